import { createHash, timingSafeEqual } from "node:crypto"
import { Effect, Option, Redacted } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { hostnameOf, isLoopback, requestHostname } from "../../http/RequestHost.ts"
import { refusal } from "./ErrorBody.ts"

/** The token that callers must send. If none is set, the service accepts only callers on the same machine. */
export type BearerToken = Option.Option<Redacted.Redacted>

/** The request headers that decide whether a caller is accepted. */
export interface CallerHeaders {
  readonly authorization: string | undefined
  readonly host: string | undefined
  readonly origin: string | undefined
}

/**
 * Returns the error response for a caller, or `undefined` if the caller is accepted. Without a token the service
 * listens only on a loopback address. A web page in a local browser can reach that address through DNS rebinding or a
 * form. The `Host` or `Origin` header reveals such a request.
 */
export const refusalOf = (
  access: BearerToken,
  { authorization, host, origin }: CallerHeaders
): { readonly status: 401 | 403; readonly detail: string } | undefined => {
  if (Option.isSome(access)) {
    const token = /^bearer +(\S+) *$/i.exec(authorization ?? "")?.[1]
    if (token === undefined)
      return { status: 401, detail: "The Authorization header must be `Bearer` followed by the token." }
    return equalInConstantTime(token, Redacted.value(access.value))
      ? undefined
      : { status: 401, detail: "The token is not valid." }
  }
  if (!isLoopback(requestHostname(host))) {
    return {
      status: 403,
      detail:
        "This service has no token, so it accepts only requests to localhost or a loopback address. Set SVC_STATUS_TOKEN to use another host name."
    }
  }
  if (origin !== undefined && !isLoopback(hostnameOf(origin))) {
    return {
      status: 403,
      detail:
        "This service has no token, so it refuses requests from web pages of other origins. Set SVC_STATUS_TOKEN to allow such requests."
    }
  }
  return undefined
}

/** Checks every request to a listener, even a request to an unknown path. */
export const layer = (access: BearerToken) =>
  HttpRouter.middleware(
    (httpEffect) =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => {
        const { authorization, host, origin } = headers
        const refusedBy = refusalOf(access, { authorization, host, origin })
        if (refusedBy === undefined) return httpEffect
        const answer = refusal(refusedBy.status, refusedBy.detail)
        return Effect.succeed(
          refusedBy.status === 401 ? HttpServerResponse.setHeader(answer, "www-authenticate", "Bearer") : answer
        )
      }),
    { global: true }
  )

const equalInConstantTime = (given: string, expected: string): boolean =>
  timingSafeEqual(digest(given), digest(expected))

/** Hashes a secret, because `timingSafeEqual` requires values of equal length. */
const digest = (secret: string): Uint8Array => createHash("sha256").update(secret).digest()
