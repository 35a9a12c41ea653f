import { HttpServerResponse } from "effect/http"
import { ControlError, type ErrorCode, envelope, statusOf } from "./api/Errors.ts"

/** A refusal as an answer, for what does not pass through an endpoint. */
export const toResponse = (error: ControlError, requestId: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(envelope(error, requestId), { status: statusOf[error.code] })

const bare: Readonly<Record<number, readonly [code: ErrorCode, message: string]>> = {
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
export const explained = (
  response: HttpServerResponse.HttpServerResponse,
  requestId: string
): HttpServerResponse.HttpServerResponse => {
  const known = response.body._tag === "Empty" ? bare[response.status] : undefined
  return known === undefined ? response : toResponse(new ControlError(...known), requestId)
}
