import { HttpServerResponse } from "effect/http"
import type { NoRoom } from "../../http/BodyMemory.ts"
import { ControlError, type ErrorCode, envelope, type Refused, statusOf } from "../api/schema/Errors.ts"

export const toResponse = (error: ControlError, requestId: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(envelope(error, requestId), { status: statusOf[error.code] })

const errorsByStatus: Readonly<Record<number, readonly [code: ErrorCode, message: string]>> = {
  400: ["invalid_json", "The request is malformed. Check its path and its encoding."],
  403: [
    "unknown_host",
    "Browsers cannot use this host name. Use an IP address, or add the name to GATEWAY_CONTROL_HOSTS."
  ],
  404: ["not_found", "There is nothing at this path."],
  413: ["request_body_too_large", "The request body is too large."],
  500: ["internal_error", "An internal error occurred. The log line with this request id has the details."]
}

/** Adds a JSON body to an error response that Effect's HTTP server created without one. The status stays the same. */
export const addErrorBody = (
  response: HttpServerResponse.HttpServerResponse,
  requestId: string
): HttpServerResponse.HttpServerResponse => {
  const known = response.body._tag === "Empty" ? errorsByStatus[response.status] : undefined
  return known === undefined ? response : toResponse(new ControlError(...known), requestId)
}

export const overloadedError = ({ whose }: NoRoom): Refused<"gateway_overloaded"> =>
  new ControlError(
    "gateway_overloaded",
    whose === "caller"
      ? "Requests from this address already hold their share of the memory for request bodies. Send fewer requests at once."
      : "The memory for request bodies is in use by other requests. Try again shortly."
  )
