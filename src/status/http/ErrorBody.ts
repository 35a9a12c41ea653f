import { HttpServerResponse } from "effect/http"

/** One parameter that cannot be taken: where it was given, and what would be taken instead. */
export interface InvalidParameter {
  readonly loc: readonly ["path" | "query" | "header" | "body", string]
  readonly msg: string
}

/** How the messaging routers refuse: one shape, whatever the status. */
export const refusal = (
  status: number,
  detail: string,
  headers: Readonly<Record<string, string>> = {}
): HttpServerResponse.HttpServerResponse => HttpServerResponse.jsonUnsafe({ detail }, { status, headers })

/** Every parameter that cannot be taken, at once. */
export const invalidParameters = (parameters: ReadonlyArray<InvalidParameter>): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe({ detail: parameters }, { status: 422 })

/** What is asked for cannot be done now, and can be later. */
export const unavailable = (detail: string, retryAfterSeconds = 1): HttpServerResponse.HttpServerResponse =>
  refusal(503, detail, { "retry-after": String(retryAfterSeconds) })
