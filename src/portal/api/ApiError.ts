/** A part of the request that the server refused, with the sentence that says why. */
export interface FieldError {
  readonly field: string
  readonly message: string
}

/** What the server said instead of a result, in one shape for the control API and the API of tasks. */
export class ApiError extends Error {
  /** 0 if there was no response. */
  readonly status: number
  readonly code: string
  readonly requestId: string | undefined
  readonly fields: ReadonlyArray<FieldError>

  constructor(
    status: number,
    code: string,
    message: string,
    {
      fields = [],
      requestId
    }: { readonly requestId?: string | undefined; readonly fields?: ReadonlyArray<FieldError> } = {}
  ) {
    super(message)
    this.status = status
    this.code = code
    this.requestId = requestId
    this.fields = fields
  }
}

/** Whether the server has looked at the request and said no. It would say so again. */
export const isRefusal = ({ status }: ApiError): boolean => status > 0 && status < 500

/** Reads `{"error": {…}}` of the control API, and `{"detail": …}` of the API of tasks. */
export const apiErrorOf = async (response: Response): Promise<ApiError> => {
  const requestId = response.headers.get("x-request-id") ?? undefined
  const body: unknown = await response.json().catch(() => undefined)
  const { detail, error } = objectOf(body)
  if (error !== undefined) {
    const { code, message, param, request_id } = objectOf(error)
    const sentence = textOf(message) ?? `The server answered ${response.status}.`
    const field = textOf(param)
    return new ApiError(response.status, textOf(code) ?? `http_${response.status}`, sentence, {
      requestId: textOf(request_id) ?? requestId,
      fields: field === undefined ? [] : [{ field, message: sentence }]
    })
  }
  const fields = Array.isArray(detail) ? detail.map(fieldErrorOf) : []
  const sentence = textOf(detail) ?? (fields.map(({ field, message }) => `${field} ${message}`).join("; ") || undefined)
  return new ApiError(
    response.status,
    `http_${response.status}`,
    sentence ?? `The server answered ${response.status}.`,
    { requestId, fields }
  )
}

const fieldErrorOf = (problem: unknown): FieldError => {
  const { loc, msg } = objectOf(problem)
  return { field: Array.isArray(loc) ? loc.slice(1).join(".") : "", message: textOf(msg) ?? "is not valid" }
}

const objectOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? { ...value } : {}

const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)
