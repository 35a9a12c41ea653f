import { HttpServerResponse } from "effect/http"
import type { NoRoom } from "../../http/BodyMemory.ts"

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

/** Refuses a request whose body has no room: because of the caller's own requests, or of those of others. */
export const noRoom = ({ whose }: NoRoom): HttpServerResponse.HttpServerResponse =>
  whose === "caller"
    ? refusal(
        429,
        "Requests from this address already use their share of the memory for request bodies. Send fewer requests at once.",
        { "retry-after": "1" }
      )
    : unavailable("Other requests use all of the memory for request bodies. Try again in a moment.")
