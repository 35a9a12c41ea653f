import { createHash, timingSafeEqual } from "node:crypto"
import { Effect, Option, Redacted } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { hostnameOf, isLoopback, requestHostname } from "../../http/RequestHost.ts"
import { refusal } from "./ErrorBody.ts"

/** Whoever has the token; without one, programs of this machine. */
export type BearerToken = Option.Option<Redacted.Redacted>

/** What an admission is decided by. */
export interface CallerHeaders {
  readonly authorization: string | undefined
  readonly host: string | undefined
  readonly origin: string | undefined
}

/**
 * Why a caller is not let in. Without a token a listener is bound to a loopback address, which every page in a browser
 * of this machine reaches too: by its own name that leads there, or by a form that it sends. Neither comes from
 * loopback by its `Host` and `Origin`.
 */
export const refusalOf = (
  access: BearerToken,
  { authorization, host, origin }: CallerHeaders
): { readonly status: 401 | 403; readonly detail: string } | undefined => {
  if (Option.isSome(access)) {
    const token = /^bearer +(\S+) *$/i.exec(authorization ?? "")?.[1]
    if (token === undefined) return { status: 401, detail: "Authorization must be `Bearer` and the token." }
    return equalInConstantTime(token, Redacted.value(access.value))
      ? undefined
      : { status: 401, detail: "The token is not known." }
  }
  if (!isLoopback(requestHostname(host))) {
    return { status: 403, detail: "Without a token, only requests to a loopback address or to localhost are answered." }
  }
  if (origin !== undefined && !isLoopback(hostnameOf(origin))) {
    return { status: 403, detail: "Without a token, pages of other origins are not answered." }
  }
  return undefined
}

/** For every route of a listener, also for those that there are not. */
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

/** Of one length, whatever was given. */
const digest = (secret: string): Uint8Array => createHash("sha256").update(secret).digest()
