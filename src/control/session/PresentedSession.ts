import { Duration, Effect, Option } from "effect"
import { type Headers, HttpServerRequest } from "effect/http"
import { hostnameOf, isLoopback } from "../../http/RequestHost.ts"
import { digestHex } from "../../state/Secret.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { ControlOrigin } from "./ControlOrigin.ts"
import { ListenerSessions } from "./ListenerSessions.ts"
import * as SessionCookie from "./SessionCookie.ts"

/** Every use extends a session by this time. */
export const lifetime = Duration.hours(12)

export const csrfHeader = "x-svc-csrf"

export const cookieOf = (origin: Option.Option<string>, { cookie }: ListenerSessions, maxAge = lifetime) =>
  SessionCookie.sessionCookie(
    Option.getOrElse(origin, () => ""),
    cookie,
    maxAge
  )

/**
 * The value of the header that unsafe requests need. Another origin can neither send a header of its own without a
 * permission that this listener never gives, nor read the value, should a proxy in front give that permission to all.
 */
export const csrfOf = (session: string): string => digestHex(`csrf ${session}`)

type ProofMissing = Refused<"cross_origin_request" | "missing_csrf_header">

/**
 * Returns the session cookies of a request that may be the session, the likeliest first. Browsers send cookies with
 * requests that any page makes them send, so a cookie counts only with the proof that a page of this origin sent it.
 */
export const presentedSessions: Effect.Effect<
  ReadonlyArray<string>,
  ProofMissing,
  HttpServerRequest.HttpServerRequest
> = Effect.gen(function* () {
  const { headers, method } = yield* HttpServerRequest.HttpServerRequest
  const origin = yield* ControlOrigin
  const candidates = SessionCookie.sessionCandidates(headers["cookie"], cookieOf(origin, yield* ListenerSessions).name)
  if (candidates.length === 0) return candidates
  if (!isSameOrigin(headers, origin)) return yield* crossOrigin
  if (safeMethods.has(method)) return candidates
  const proof = headers[csrfHeader]
  const proven = candidates.filter((session) => csrfOf(session) === proof)
  return proven.length > 0 ? proven : yield* missingCsrf
})

/** True if no page of another origin can have sent the request. Programs send neither of the two headers. */
export const isNotCrossOrigin = (headers: Headers.Headers, origin: Option.Option<string>): boolean =>
  (headers["sec-fetch-site"] === undefined && headers["origin"] === undefined) || isSameOrigin(headers, origin)

/**
 * True if the page could not use a session: browsers send `Sec-Fetch-Site` to https and to this machine alone, and with
 * a GET of the own origin no `Origin` that would replace it.
 */
export const isInsecurePage = (headers: Headers.Headers): boolean => {
  const page = headers["origin"]
  if (headers["sec-fetch-site"] !== undefined || page === undefined || !page.startsWith("http://")) return false
  const hostname = hostnameOf(page)
  return !isLoopback(hostname) && !hostname.endsWith(".localhost")
}

/** The browser itself sets these headers. `Sec-Fetch-Site` is decisive where there is one. */
const isSameOrigin = (headers: Headers.Headers, origin: Option.Option<string>): boolean => {
  const site = headers["sec-fetch-site"]
  if (site !== undefined) return site === "same-origin"
  const page = headers["origin"]
  if (page === undefined) return false
  return Option.match(origin, {
    onSome: (own) => page === own,
    onNone: () => page === `http://${headers["host"]}` || page === `https://${headers["host"]}`
  })
}

const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"])

export const crossOrigin = new ControlError(
  "cross_origin_request",
  "The session cookie counts only with a proof that a page of this origin sent the request: Sec-Fetch-Site must be same-origin, or Origin must be this origin. Programs send Authorization: Bearer."
)

const missingCsrf = new ControlError(
  "missing_csrf_header",
  `A request that changes something needs ${csrfHeader} beside the session cookie. Its value is csrf.value of GET /admin-ui/session.`
)
