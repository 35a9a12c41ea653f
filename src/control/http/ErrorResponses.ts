import { HttpServerResponse } from "effect/http"
import type { NoRoom } from "../../http/BodyMemory.ts"
import { ControlError, type ErrorCode, envelope, type Refused, statusOf } from "../api/schema/Errors.ts"

/** A refusal as an answer, for what does not pass through an endpoint. */
export const toResponse = (error: ControlError, requestId: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(envelope(error, requestId), { status: statusOf[error.code] })

const errorsByStatus: Readonly<Record<number, readonly [code: ErrorCode, message: string]>> = {
  400: ["invalid_json", "The request cannot be read."],
  403: [
    "unknown_host",
    "A browser is not answered by this name; use an address, or add the name to GATEWAY_CONTROL_HOSTS."
  ],
  404: ["not_found", "There is nothing at this path."],
  413: ["request_body_too_large", "The request body is too large."],
  500: ["internal_error", "Something went wrong here; the request id leads to what it was."]
}

/** What the server answered without a word: the same status with the envelope, where there is one to say. */
export const addErrorBody = (
  response: HttpServerResponse.HttpServerResponse,
  requestId: string
): HttpServerResponse.HttpServerResponse => {
  const known = response.body._tag === "Empty" ? errorsByStatus[response.status] : undefined
  return known === undefined ? response : toResponse(new ControlError(...known), requestId)
}

/** The bodies of requests have no room. */
export const overloadedError = ({ whose }: NoRoom): Refused<"gateway_overloaded"> =>
  new ControlError(
    "gateway_overloaded",
    whose === "caller"
      ? "This address holds a quarter of the room that there is for the bodies of requests, and has none for this one. Send fewer at once."
      : "The requests under way hold as many bodies as they may, and there is no room for this one. Try again shortly."
  )
