import { Context, Effect, Option, Redacted } from "effect"
import { type Headers, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Database } from "../../services/Database.ts"
import { Audit } from "../audit/Audit.ts"
import { plainPage } from "../http/PlainPage.ts"
import { portalPath } from "../http/PortalPaths.ts"
import { transformResponse } from "../http/ResponseTransform.ts"
import { ControlOrigin } from "../session/ControlOrigin.ts"
import { ListenerSessions } from "../session/ListenerSessions.ts"
import { cookieOf, isNotCrossOrigin } from "../session/PresentedSession.ts"
import { sessionCandidates } from "../session/SessionCookie.ts"
import { toStoreFailures } from "../store/Rows.ts"
import { isCode, StartLink } from "./StartLink.ts"
import * as StartLinkSession from "./StartLinkSession.ts"

export const startLinkPath = "/admin-ui/session/link"

/**
 * Signs in with the link that the program prints when it starts.
 *
 * A GET signs in only where a person has opened the link outside of any page, as from a terminal. A browser that loads
 * the page in advance, a page of another site and a program that previews links do not use the code up: they get a page
 * with a button, or nothing.
 */
export const layer = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const link = yield* Effect.serviceOption(StartLink)
    const origin = yield* ControlOrigin
    const listener = yield* ListenerSessions
    const services = Context.make(Audit, yield* Audit).pipe(Context.add(Database, yield* Database))

    const enter = Effect.fnUntraced(function* (session: Redacted.Redacted) {
      const { name, options } = cookieOf(origin, listener)
      yield* transformResponse((response) =>
        HttpServerResponse.setCookieUnsafe(response, name, Redacted.value(session), options)
      )
      return toPortal
    })

    const signIn = Effect.fnUntraced(function* (code: string) {
      const taken = Option.isNone(link) ? "unknown" : yield* link.value.take(code)
      if (taken !== "taken") return yield* refuse(taken)
      const session = yield* toStoreFailures(StartLinkSession.begin).pipe(
        Effect.catch(() => Effect.succeed(Option.none<Redacted.Redacted>()))
      )
      if (Option.isSome(session)) return yield* enter(session.value)
      if (Option.isSome(link)) yield* link.value.giveBack
      return noSession()
    })

    /** Whoever opens a used link again is usually signed in by it. The portal finds out. */
    const refuse = Effect.fnUntraced(function* (reason: keyof typeof refusals) {
      const { headers } = yield* HttpServerRequest.HttpServerRequest
      const isKnown = sessionCandidates(headers["cookie"], cookieOf(origin, listener).name).length > 0
      return reason === "used" && isKnown ? toPortal : refusals[reason]()
    })

    const opened = Effect.gen(function* () {
      const { headers, method, url } = yield* HttpServerRequest.HttpServerRequest
      const code = codeOf(url)
      if (code === undefined) return yield* refuse("unknown")
      if (isInAdvance(headers) || method === "HEAD") return inAdvance
      return isOpenedByPerson(headers) ? yield* signIn(code) : confirmation(code)
    })

    const confirmed = Effect.gen(function* () {
      const { headers, url } = yield* HttpServerRequest.HttpServerRequest
      const code = codeOf(url)
      if (code === undefined) return yield* refuse("unknown")
      return isNotCrossOrigin(headers, origin) ? yield* signIn(code) : confirmation(code)
    })

    yield* router.add("GET", startLinkPath, Effect.provideContext(opened, services))
    yield* router.add("POST", startLinkPath, Effect.provideContext(confirmed, services))
  })
)

const codeOf = (url: string): string | undefined => {
  const code = new URLSearchParams(url.slice(startLinkPath.length)).get("code") ?? ""
  return isCode(code) ? code : undefined
}

/** Browsers name the purpose when they load a page that nobody has asked for yet. */
const isInAdvance = (headers: Headers.Headers): boolean =>
  ["sec-purpose", "purpose", "x-moz", "x-purpose"].some((name) =>
    /prefetch|prerender|preview/.test(headers[name] ?? "")
  )

/** The browser itself sets these headers. `none`: the address bar, a bookmark or another program, such as a terminal. */
const isOpenedByPerson = (headers: Headers.Headers): boolean =>
  headers["sec-fetch-site"] === "none" &&
  headers["sec-fetch-mode"] === "navigate" &&
  headers["sec-fetch-dest"] === "document"

const toPortal = HttpServerResponse.redirect(portalPath, { status: 303 })

/** An error, so that the browser forgets it and asks again once the person opens the page. */
const inAdvance = HttpServerResponse.empty({ status: 503 })

const confirmation = (code: string) =>
  plainPage(
    200,
    "Sign in to svc-runtime?",
    `<p>This link signs in with all rights, once. It comes from the terminal in which svc-runtime was started. If somebody sent it to you, close this page.</p>
<form method="post" action="${startLinkPath}?code=${code}"><button>Sign in</button></form>`
  )

const otherwise = `<p>Sign in <a href="${portalPath}">with an operator token</a>, or restart svc-runtime in a terminal: it prints a new link.</p>`

const refusals = {
  used: () =>
    plainPage(
      410,
      "This link has been used",
      `<p>It signs in once. If it was not you who used it, rotate the operator token: that ends the session.</p>${otherwise}`
    ),
  expired: () =>
    plainPage(410, "This link has expired", `<p>It signs in within a minute of the start.</p>${otherwise}`),
  unknown: () =>
    plainPage(
      404,
      "This link is not known",
      `<p>It belongs to an earlier start of svc-runtime, or is incomplete.</p>${otherwise}`
    )
}

const noSession = () =>
  plainPage(
    503,
    "Nobody could be signed in",
    `<p>The database cannot be used, or no operator token with all scopes is active. Open the link again within its minute.</p>${otherwise}`
  )
