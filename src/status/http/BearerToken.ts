import { createHash, timingSafeEqual } from "node:crypto"
import { Effect, Option, Redacted } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { hostnameOf, isLoopback, requestHostname } from "../../http/RequestHost.ts"
import { refusal } from "./ErrorBody.ts"

/** The token that callers must present. Without a token, only programs on this machine are admitted. */
export type BearerToken = Option.Option<Redacted.Redacted>

/** The request headers that decide whether a caller is admitted. */
export interface CallerHeaders {
  readonly authorization: string | undefined
  readonly host: string | undefined
  readonly origin: string | undefined
}

/**
 * Returns why a caller is refused, or `undefined` if it is admitted. Without a token the service listens on a loopback
 * address. A web page in a browser on the same machine can reach this address too, by a DNS name that resolves to it or
 * by submitting a form. Such a request has a foreign `Host` or `Origin`.
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
        "Without a token, this service accepts only requests to a loopback address or to localhost: set SVC_STATUS_TOKEN to use it by another name."
    }
  }
  if (origin !== undefined && !isLoopback(hostnameOf(origin))) {
    return {
      status: 403,
      detail:
        "Without a token, this service refuses requests from web pages of other origins: set SVC_STATUS_TOKEN to allow them."
    }
  }
  return undefined
}

/** Checks the requests of a whole listener, including those to unknown paths. */
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

/** `timingSafeEqual` requires values of equal length. */
const digest = (secret: string): Uint8Array => createHash("sha256").update(secret).digest()
