import { createHash, timingSafeEqual } from "node:crypto"
import { Effect, Option, Redacted } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { hostnameOf, isLoopback, requestHostname } from "../../http/RequestHost.ts"
import { refusal } from "./ErrorBody.ts"

/** The token that callers must present; without one, only programs on this machine are admitted. */
export type BearerToken = Option.Option<Redacted.Redacted>

/** The headers that decide whether a caller is admitted. */
export interface CallerHeaders {
  readonly authorization: string | undefined
  readonly host: string | undefined
  readonly origin: string | undefined
}

/**
 * Why a caller is refused; `undefined` if it is admitted.
 *
 * Without a token the listener is bound to a loopback address, which any web page in a browser on this machine can
 * reach too: through a DNS name of its own that resolves to loopback, or by submitting a form. Such requests carry a
 * foreign `Host` or `Origin`.
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
      detail: "Without a token, this service accepts only requests to a loopback address or to localhost."
    }
  }
  if (origin !== undefined && !isLoopback(hostnameOf(origin))) {
    return { status: 403, detail: "Without a token, this service refuses requests from pages of other origins." }
  }
  return undefined
}

/** Middleware for a whole listener: also covers paths without a route. */
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

/** Gives both values the same length, which `timingSafeEqual` requires. */
const digest = (secret: string): Uint8Array => createHash("sha256").update(secret).digest()
