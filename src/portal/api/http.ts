import { ApiError, apiErrorOf } from "./ApiError.ts"

export interface Sent {
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/** The header that proves that a page of this origin makes the request. The session has its value. */
let csrf: { readonly header: string; readonly value: string } | undefined

export const setCsrf = (proof: typeof csrf): void => {
  csrf = proof
}

let onSignedOut = (): void => {}

/** `listener` hears of every response which says that the session has ended. */
export const whenSignedOut = (listener: () => void): void => {
  onSignedOut = listener
}

const noResponse = "The server cannot be reached. It may be restarting, or the network may be down."
const lateResponse = "The server did not answer within a minute. A change may have been made all the same: look first."
const deadlineMs = 60_000

/** Sends a request with the session cookie. Fails with an `ApiError` unless the response is a success. */
export const send = async (
  method: string,
  address: string,
  { body, headers, signal }: Sent = {}
): Promise<Response> => {
  const late = new AbortController()
  const timer = window.setTimeout(() => late.abort(), deadlineMs)
  const response = await fetch(address, {
    method,
    credentials: "same-origin",
    headers: {
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(method !== "GET" && csrf !== undefined && { [csrf.header]: csrf.value }),
      ...headers
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: signal === undefined ? late.signal : AbortSignal.any([signal, late.signal])
  })
    .catch((cause: unknown) => {
      if (signal?.aborted === true) throw cause
      throw late.signal.aborted ? new ApiError(0, "timeout", lateResponse) : new ApiError(0, "unreachable", noResponse)
    })
    .finally(() => window.clearTimeout(timer))
  if (response.ok) return response
  const error = await apiErrorOf(response)
  if (error.status === 401) onSignedOut()
  throw error
}

export type QueryValue = string | number | boolean | ReadonlyArray<string> | undefined

/** Absent and empty values are left out, as a cleared filter means that there is none. A list repeats its parameter. */
export const withQuery = (path: string, query: Readonly<Record<string, QueryValue>> = {}): string => {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [value].flat().map((one) => [name, String(one)])
  )
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`
}

/** Puts the parameters into a path such as `/admin-ui/admin/keys/:key_id`. */
export const withParameters = (path: string, parameters: Readonly<Record<string, string>> = {}): string =>
  path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(parameters[name] ?? ""))
