/** The whole response is known before its first byte is sent. */
export interface SimulatedResponse {
  readonly status: number
  /** Header names and values, alternating. */
  readonly headers: ReadonlyArray<string>
  /** The simulator sends the chunks in order, with a pause in between. */
  readonly chunks: ReadonlyArray<Uint8Array>
  /** The delay of the status and headers, in milliseconds. */
  readonly delayMs: number
  /** After the last chunk: `cut` closes the connection, `stalled` keeps it open and sends nothing more. */
  readonly ending: "complete" | "cut" | "stalled"
}

/** `A` is the OpenAI API, `B` the Anthropic API. */
export type Family = "A" | "B"

/** The time and number of the request. Together with the request they determine the response. */
export interface Moment {
  readonly now: number
  readonly serial: string
}

export const seconds = (moment: Moment): number => Math.floor(moment.now / 1_000)

const makeResponse = (
  status: number,
  headers: ReadonlyArray<string>,
  chunks: ReadonlyArray<Uint8Array>
): SimulatedResponse => ({
  status,
  headers,
  chunks,
  delayMs: 0,
  ending: "complete"
})

export const jsonResponse = (value: unknown, status = 200, headers: ReadonlyArray<string> = []): SimulatedResponse =>
  textResponse("application/json", JSON.stringify(value), status, headers)

export const textResponse = (
  contentType: string,
  text: string,
  status = 200,
  headers: ReadonlyArray<string> = []
): SimulatedResponse => {
  const bytes = Buffer.from(text)
  return makeResponse(
    status,
    ["content-type", contentType, "content-length", String(bytes.byteLength), ...headers],
    bytes.byteLength === 0 ? [] : [bytes]
  )
}

/** The `type` of an event is also sent as the SSE field `event`. OpenAI's chat chunks have no type. */
export const eventStreamResponse = (events: ReadonlyArray<object | string>): SimulatedResponse =>
  makeResponse(
    200,
    ["content-type", "text/event-stream; charset=utf-8", "cache-control", "no-cache"],
    events.map((event) => {
      if (typeof event === "string") return Buffer.from(`data: ${event}\n\n`)
      const name = "type" in event && typeof event.type === "string" ? `event: ${event.type}\n` : ""
      return Buffer.from(`${name}data: ${JSON.stringify(event)}\n\n`)
    })
  )

export const errorResponse = (
  family: Family,
  moment: Moment,
  status: number,
  message: string,
  options: { readonly code?: string | undefined; readonly param?: string } = {}
): SimulatedResponse =>
  jsonResponse(
    family === "A"
      ? {
          error: { message, type: errorTypeA(status), param: options.param ?? null, code: options.code ?? null }
        }
      : {
          type: "error",
          error: { type: errorTypeB(status), message },
          request_id: requestId(moment)
        },
    status,
    status === 429 || status === 529 ? ["retry-after", "1"] : []
  )

export const requestId = (moment: Moment): string => `req_${moment.serial}`

const errorTypeA = (status: number): string =>
  status === 429 ? "requests" : status >= 500 ? "server_error" : "invalid_request_error"

export const errorTypeB = (status: number): string =>
  errorTypesB.get(status) ?? (status >= 500 ? "api_error" : "invalid_request_error")

const errorTypesB: ReadonlyMap<number, string> = new Map([
  [401, "authentication_error"],
  [403, "permission_error"],
  [404, "not_found_error"],
  [413, "request_too_large"],
  [429, "rate_limit_error"],
  [504, "timeout_error"],
  [529, "overloaded_error"]
])
