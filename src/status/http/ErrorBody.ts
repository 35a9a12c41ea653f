import { HttpServerResponse } from "effect/http"

export interface InvalidParameter {
  readonly loc: readonly ["path" | "query" | "header" | "body", string]
  readonly msg: string
}

/** Creates an error response with the body `{"detail": …}`. */
export const refusal = (
  status: number,
  detail: string,
  headers: Readonly<Record<string, string>> = {}
): HttpServerResponse.HttpServerResponse => HttpServerResponse.jsonUnsafe({ detail }, { status, headers })

export const invalidParameters = (parameters: ReadonlyArray<InvalidParameter>): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe({ detail: parameters }, { status: 422 })

export const unavailable = (detail: string, retryAfterSeconds = 1): HttpServerResponse.HttpServerResponse =>
  refusal(503, detail, { "retry-after": String(retryAfterSeconds) })
