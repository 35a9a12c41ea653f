import { Context, Effect, type Layer, Option, RegExp as Pattern, Redacted, Scope, Stream } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import type { BodyMemory } from "../../http/BodyMemory.ts"
import type { StartupUpstreams } from "../../policy/routes/StartupUpstreams.ts"
import type { Database } from "../../services/Database.ts"
import type { Upstream } from "../../services/Upstream.ts"
import type { Vault } from "../../state/Vault.ts"
import { ControlError, RequestId } from "../api/schema/Errors.ts"
import { allows } from "../api/schema/Security.ts"
import { toResponse } from "../http/ErrorResponses.ts"
import { insufficientScope } from "../operators/Authentication.ts"
import type { AuthSettings } from "../operators/AuthSettings.ts"
import { sessionCandidates, sessionCookie } from "../session/SessionCookie.ts"
import type { UpstreamResponse } from "./UpstreamResponse.ts"
import { forwardToUpstream, requiredScope, upstreamFailure } from "./UpstreamUi.ts"
import * as UpstreamUiCookies from "./UpstreamUiCookies.ts"
import { forOwnOrigin, type HeaderFields, valuesOf } from "./UpstreamUiHeaders.ts"
import { openingPath } from "./UpstreamUiOrigin.ts"
import { sessionLifetime, UpstreamUiSessions } from "./UpstreamUiSessions.ts"

type Services = UpstreamUiSessions | Upstream | Database | Vault | StartupUpstreams | AuthSettings | BodyMemory

type Handler = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  ControlError,
  Services | RequestId | HttpServerRequest.HttpServerRequest | Scope.Scope
>

/**
 * Serves the upstream's web interface to browsers at a separate origin. Links then work unchanged, and scripts cannot
 * reach the operator API. Only the session cookie grants access.
 */
export const layer = (
  origin: string
): Layer.Layer<never, never, HttpRouter.HttpRouter | Services | HttpRouter.Request<"Requires", RequestId>> =>
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      // Every request has its own scope, so the scope of this layer is left out.
      const services = Context.omit(Scope.Scope)(yield* Effect.context<Services>())
      const handle = (work: Handler) =>
        Effect.gen(function* () {
          const requestId = yield* RequestId
          return yield* Effect.catch(work, (error) => Effect.succeed(toResponse(error, requestId)))
        }).pipe(Effect.provideContext(services))
      yield* router.add("GET", openingPath, handle(openSession(origin)))
      yield* router.add("*", "/*", handle(proxyPage(origin)))
    })
  )

const cookieOf = (origin: string) => sessionCookie(origin, "svc_upstream_ui_session", sessionLifetime)

const findSession = Effect.fnUntraced(function* (headers: HeaderFields, origin: string) {
  const sessions = yield* UpstreamUiSessions
  for (const id of sessionCandidates(headers["cookie"], cookieOf(origin).name)) {
    const session = yield* sessions.find(id)
    if (Option.isSome(session)) return session
  }
  return Option.none()
})

/** Exchanges the code in the link for a session cookie. The next page has a URL without the code. */
const openSession = Effect.fnUntraced(function* (origin: string) {
  const { headers, url } = yield* HttpServerRequest.HttpServerRequest
  const sessions = yield* UpstreamUiSessions
  if (!isOwnRequest("GET", headers, origin)) return yield* crossOrigin
  const { name, options } = cookieOf(origin)
  const code = new URLSearchParams(url.slice(openingPath.length)).get("code")
  const id = code === null ? Option.none() : yield* sessions.redeem(code)
  if (Option.isSome(id))
    return HttpServerResponse.setCookieUnsafe(entrancePage, name, Redacted.value(id.value), options)
  // If the session is valid, the operator has only reloaded the page.
  return Option.isSome(yield* findSession(headers, origin)) ? entrancePage : yield* usedLink
})

const usedLink = new ControlError(
  "invalid_upstream_ui_session",
  "This link has been used or has expired; request another one with POST /admin-ui/admin/upstream-ui/session."
)

/**
 * This page continues with an HTML refresh, not a redirect. After a redirect chain that another site started, a browser
 * does not send `SameSite=Strict` cookies.
 */
const entrancePage = HttpServerResponse.html(
  `<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=/ui/"><title>Upstream UI</title><a href="/ui/">Upstream UI</a></html>`
)

const proxyPage = Effect.fnUntraced(function* (origin: string) {
  const { headers, method, url } = yield* HttpServerRequest.HttpServerRequest
  // An absolute URL names another server, and the upstream has no paths below `/admin-ui`.
  if (!url.startsWith("/") || /^\/admin-ui(?:[/?]|$)/.test(url)) return yield* notFound
  if (!isOwnRequest(method, headers, origin)) return yield* crossOrigin
  const session = yield* findSession(headers, origin)
  if (Option.isNone(session)) return yield* noSession
  if (!allows(session.value.scopes, [requiredScope])) return yield* insufficientScope([requiredScope])
  const forwarded = yield* forwardToUpstream(url, UpstreamUiCookies.forUpstream(headers["cookie"]))
  return yield* Effect.mapError(rewrittenResponse(forwarded.answer, forwarded.origin, origin), upstreamFailure)
})

const notFound = new ControlError("not_found", "There is nothing at this path.")

const noSession = new ControlError(
  "invalid_upstream_ui_session",
  "There is no session, or it has ended; request a link with POST /admin-ui/admin/upstream-ui/session."
)

const crossOrigin = new ControlError(
  "cross_origin_request",
  "Only pages of the upstream's UI may send this request; other pages may only link here. Open the address directly."
)

/**
 * Browsers send the session cookie automatically, even for pages on other ports of this host. The cookie alone
 * therefore proves nothing. Requests must come from this origin, the address bar or a followed link.
 */
const isOwnRequest = (method: string, headers: HeaderFields, origin: string): boolean => {
  const site = headers["sec-fetch-site"]
  if (site === "same-origin") return true
  if (!safeMethods.has(method)) return site === undefined && headers["origin"] === origin
  // Browsers without `Sec-Fetch-Site` name the page that sent a request across origins.
  if (headers["origin"] !== undefined && headers["origin"] !== origin) return false
  if (site === undefined || site === "none") return true
  return headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document"
}

const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"])

/** Responses above this size are sent without changes to the body. */
const maxRewrittenBytes = 2_097_152

const rewrittenResponse = Effect.fnUntraced(function* (
  { body, headers, status, bufferUpTo }: UpstreamResponse,
  upstream: string,
  origin: string
) {
  const fields = forOwnOrigin(headers)
  const [location] = valuesOf(headers, "location")
  const options = {
    status,
    headers: {
      ...fields,
      ...(location !== undefined && { location: pathOnOrigin(location, upstream) }),
      "content-security-policy": [fields["content-security-policy"], "frame-ancestors 'self'"]
        .filter(Boolean)
        .join(", "),
      "cross-origin-opener-policy": "same-origin-allow-popups",
      "cross-origin-resource-policy": "same-origin"
    },
    cookies: UpstreamUiCookies.forBrowser(valuesOf(headers, "set-cookie"))
  }
  const text = status !== 206 && isRewritten(fields) ? yield* bufferUpTo(maxRewrittenBytes) : undefined
  if (text === undefined) return HttpServerResponse.stream(body, options)
  const rewritten = replaceOrigin(text.toString("latin1"), upstream, origin)
  return HttpServerResponse.stream(Stream.make(Buffer.from(rewritten, "latin1")), options)
})

const isRewritten = (headers: HeaderFields): boolean =>
  ["identity", undefined].includes(headers["content-encoding"]) &&
  /^(?:text\/html|(?:text|application)\/(?:x-)?javascript|application\/(?:[\w.-]+\+)?json)\b/i.test(
    headers["content-type"] ?? ""
  )

/** A redirect to the upstream's address becomes a redirect to a path of this origin. */
const pathOnOrigin = (link: string, upstream: string): string =>
  link === upstream || link.startsWith(`${upstream}/`) ? link.slice(upstream.length) || "/" : link

/** Replaces the upstream's address in quotes, such as the `redirect_url` of a login, with this origin. */
const replaceOrigin = (text: string, upstream: string, origin: string): string =>
  text.replaceAll(new RegExp(`(?<=["'\`])${Pattern.escape(upstream)}(?=["'\`/?#\\\\])`, "g"), origin)
