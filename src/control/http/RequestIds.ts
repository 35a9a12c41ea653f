import { randomUUID } from "node:crypto"
import { Cause, Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { RequestId } from "../api/schema/Errors.ts"
import { addErrorBody } from "./ErrorResponses.ts"
import { transformResponse } from "./ResponseTransform.ts"

const validRequestId = /^[\x21-\x7e]{1,128}$/

/**
 * Gives every request its id, and every answer the headers that none may lack. The pre-response handler is the last one
 * before the socket, so it also sees what the server answers by itself: to an unreadable path, to a defect.
 */
export const RequestIds = HttpRouter.middleware<{ provides: RequestId }>()(
  (httpEffect) =>
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const given = request.headers["x-request-id"]
      const id = given !== undefined && validRequestId.test(given) ? given : randomUUID()
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

/** The caller gets a bare `internal_error`; this line is where its request id leads. */
const reportDefect = (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Cause.hasDies(cause) ? Effect.logError("A control request failed", Cause.pretty(cause)) : Effect.void

/** Answers may hold a new secret, so nobody keeps them; a 401 names the scheme (RFC 9110 §11.6.1). */
const responseHeaders = ({ headers, status }: HttpServerResponse.HttpServerResponse, requestId: string) => ({
  "x-request-id": requestId,
  "cache-control": "no-store",
  ...(status === 401 && { "www-authenticate": "Bearer" }),
  ...(headers["content-security-policy"] === undefined && securityHeaders)
})

/** An answer of the gateway itself: shown as a page it loads nothing, runs nothing, and is in no other page's frame. */
export const securityHeaders = {
  "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin"
} as const
