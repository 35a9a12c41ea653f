import { randomUUID } from "node:crypto"
import { Cause, Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { RequestId } from "../api/schema/Errors.ts"
import { addErrorBody } from "./ErrorResponses.ts"
import { transformResponse } from "./ResponseTransform.ts"

const validRequestId = /^[\x21-\x7e]{1,128}$/

/**
 * Gives every request an id and sets the common response headers. The headers are set just before the response is sent.
 * They are therefore also present if the HTTP server itself creates the response, for malformed paths and bugs.
 */
export const RequestIds = HttpRouter.middleware<{ provides: RequestId }>()(
  (httpEffect) =>
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const clientId = request.headers["x-request-id"]
      const id = clientId !== undefined && validRequestId.test(clientId) ? clientId : randomUUID()
      yield* transformResponse((response) =>
        HttpServerResponse.setHeaders(addErrorBody(response, id), responseHeaders(response, id))
      )
      return yield* httpEffect.pipe(
        Effect.tapCause(reportDefect),
        Effect.provideService(RequestId, id),
        Effect.annotateLogs({ request_id: id })
      )
    }),
  { global: true }
)

/** The client receives only `internal_error` and the request id. The log line has the same id. */
const reportDefect = (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Cause.hasDies(cause)
    ? Effect.logError(
        "An unexpected error ended a request to the control listener with status 500",
        Cause.pretty(cause)
      )
    : Effect.void

/** Responses may contain a new secret, so clients must not store them. A 401 names the scheme (RFC 9110 §11.6.1). */
const responseHeaders = ({ headers, status }: HttpServerResponse.HttpServerResponse, requestId: string) => ({
  "x-request-id": requestId,
  "cache-control": "no-store",
  ...(status === 401 && { "www-authenticate": "Bearer" }),
  ...(headers["content-security-policy"] === undefined && securityHeaders)
})

/** If a browser shows the response as a page, the page loads nothing, runs no script and cannot be framed. */
export const securityHeaders = {
  "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin"
} as const
