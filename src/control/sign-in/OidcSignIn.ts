import { Context, DateTime, Duration, Effect, Layer, Option, Redacted, Schema } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { Database } from "../../services/Database.ts"
import { Vault } from "../../state/Vault.ts"
import { ControlError, type Refused, type RequestId } from "../api/schema/Errors.ts"
import { Operator } from "../api/schema/Security.ts"
import { Audit } from "../audit/Audit.ts"
import { transformResponse } from "../http/ResponseTransform.ts"
import { callerOf } from "../operators/Authentication.ts"
import { AuthSettings } from "../operators/AuthSettings.ts"
import { ControlOrigin } from "../session/ControlOrigin.ts"
import * as IdentitySessions from "../session/IdentitySessions.ts"
import { ListenerSessions } from "../session/ListenerSessions.ts"
import { cookieOf } from "../session/PresentedSession.ts"
import * as SessionCookie from "../session/SessionCookie.ts"
import { type StoreFailure, toStoreFailures } from "../store/Rows.ts"
import { type OidcClient, StartupOidcClient, scopesOf } from "./OidcClient.ts"
import * as OidcProvider from "./OidcProvider.ts"
import * as PendingSignIn from "./PendingSignIn.ts"
import * as ReturnPath from "./ReturnPath.ts"

type Request = HttpServerRequest.HttpServerRequest | RequestId

type NotPossible = Refused<"not_found" | "identity_provider_unavailable"> | StoreFailure

/** The parameters with which the identity provider sends a browser back. */
export interface ProviderAnswer {
  readonly state?: string
  readonly code?: string
  readonly error?: string
  readonly iss?: string
}

const callbackPath = "/admin-ui/session/oidc/callback"
const defaultReturnTo = "/admin-ui/"

/** Signs browsers in at the identity provider, with an authorisation code and PKCE. The responses are redirects. */
export class OidcSignIn extends Context.Service<
  OidcSignIn,
  {
    readonly start: (
      returnTo: string | undefined
    ) => Effect.Effect<void, NotPossible | Refused<"invalid_request">, Request>
    readonly finish: (
      answer: ProviderAnswer
    ) => Effect.Effect<
      void,
      | NotPossible
      | Refused<"invalid_sign_in" | "invalid_identity_token" | "sign_in_refused" | "too_many_operator_tokens">,
      Request
    >
  }
>()("svc/control/OidcSignIn") {
  static readonly layer = Layer.suspend(() => Layer.effect(OidcSignIn, make))
}

interface Configured {
  readonly client: OidcClient
  readonly provider: OidcProvider.OidcProvider
  readonly redirectUri: string
  readonly key: PendingSignIn.SigningKey
}

const make = Effect.gen(function* () {
  const services = Context.make(Audit, yield* Audit).pipe(Context.add(Database, yield* Database))
  const settings = yield* AuthSettings
  const vault = yield* Vault
  const origin = yield* ControlOrigin
  const listener = yield* ListenerSessions
  const startupClient = yield* StartupOidcClient
  const identityProvider = yield* OidcProvider.make
  const pendingCookie = pendingCookieOf(origin)

  const configured = Effect.gen(function* () {
    if (Option.isNone(startupClient) || Option.isNone(origin)) return yield* notConfigured
    const client = startupClient.value
    const { identity_provider: found } = yield* settings.get
    if (found.issuer === null || found.oidc_discovery_url === null) return yield* notConfigured
    const all: Configured = {
      client,
      provider: {
        discoveryUrl: found.oidc_discovery_url,
        issuer: found.issuer,
        audience: client.id,
        algorithms: found.accepted_algorithms,
        keysTtlMs: found.jwks_cache_ttl_seconds * 1000,
        tenantId: found.tenant_id,
        skewMs: found.clock_skew_seconds * 1000
      },
      redirectUri: origin.value + callbackPath,
      key: vault.derive(Buffer.from(Redacted.value(client.secret)), "browser sign-in")
    }
    return all
  })

  const setPending = (value: string, maxAge: Duration.Duration) =>
    setCookie(pendingCookie.name, value, { ...pendingCookie.options, maxAge })

  /** The sign-in that this browser has begun. Its cookie has then done its work, whatever comes next. */
  const takePending = Effect.fnUntraced(function* (key: PendingSignIn.SigningKey, state: string | undefined) {
    const { headers } = yield* HttpServerRequest.HttpServerRequest
    const begun = SessionCookie.sessionCandidates(headers["cookie"], pendingCookie.name)
      .flatMap((cookie) => Option.toArray(PendingSignIn.fromCookie(key, cookie)))
      .find((pending) => pending.state === state)
    if (begun === undefined) return yield* foreignState
    yield* setPending("", Duration.zero)
    if (DateTime.isLessThanOrEqualTo(begun.expiresAt, yield* DateTime.now)) return yield* expiredState
    if (yield* toStoreFailures(IdentitySessions.isUsed(begun.state))) return yield* IdentitySessions.usedState
    return begun
  })

  const start = Effect.fn("OidcSignIn.start")(function* (returnTo: string = defaultReturnTo) {
    const { client, key, provider, redirectUri } = yield* configured
    const path = ReturnPath.parse(returnTo)
    if (Option.isNone(path)) return yield* foreignPath
    const pending = PendingSignIn.begin(path.value, yield* DateTime.now)
    const url = yield* identityProvider.signInUrl(provider, client, {
      redirectUri,
      state: pending.state,
      nonce: PendingSignIn.nonceOf(key, pending),
      challenge: PendingSignIn.challengeOf(PendingSignIn.verifierOf(key, pending))
    })
    yield* setPending(PendingSignIn.toCookie(key, pending), PendingSignIn.lifetime)
    yield* redirectTo(url)
  })

  const finish = Effect.fn("OidcSignIn.finish")(function* (answer: ProviderAnswer) {
    const { client, key, provider, redirectUri } = yield* configured
    const pending = yield* takePending(key, answer.state)
    if (answer.iss !== undefined && answer.iss !== provider.issuer) return yield* otherIssuer
    if (answer.error !== undefined) return yield* deniedBy(answer.error)
    if (answer.code === undefined) return yield* noCode
    const { groups, subject } = yield* identityProvider.personOf(provider, client, {
      redirectUri,
      code: answer.code,
      nonce: PendingSignIn.nonceOf(key, pending),
      verifier: PendingSignIn.verifierOf(key, pending)
    })
    const scopes = scopesOf(client, groups)
    if (scopes.length === 0) return yield* noGroup(client)
    const session = yield* beginSession({ issuer: provider.issuer, subject, scopes }, pending)
    const { name, options } = cookieOf(origin, listener)
    yield* setCookie(name, Redacted.value(session), options)
    yield* redirectTo(pending.returnTo)
  })

  const beginSession = (person: IdentitySessions.VerifiedPerson, pending: PendingSignIn.PendingSignIn) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) =>
      Effect.provideService(IdentitySessions.create(person, pending), Operator, {
        tokenId: null,
        scopes: person.scopes,
        ...callerOf(headers)
      })
    )

  return OidcSignIn.of({
    start,
    finish: (answer) => Effect.provideContext(finish(answer), services)
  })
})

/** Browsers send a cookie that is `Strict` only from pages of the same site, and the identity provider is another one. */
const pendingCookieOf = (origin: Option.Option<string>) => {
  const { name, options } = SessionCookie.sessionCookie(
    Option.getOrElse(origin, () => ""),
    "svc_sign_in",
    PendingSignIn.lifetime
  )
  return { name, options: { ...options, sameSite: "lax" } as const }
}

type CookieOptions = Omit<ReturnType<typeof pendingCookieOf>["options"], "sameSite"> & {
  readonly sameSite: "lax" | "strict"
}

const setCookie = (name: string, value: string, options: CookieOptions) =>
  transformResponse((response) => HttpServerResponse.setCookieUnsafe(response, name, value, options))

const redirectTo = (location: string) =>
  transformResponse((response) => HttpServerResponse.setHeader(response, "location", location))

const notConfigured = new ControlError(
  "not_found",
  "No sign-in at an identity provider is configured. Set IDENTITY_SIGN_IN_CLIENT_ID, IDENTITY_SIGN_IN_CLIENT_SECRET and GATEWAY_CONTROL_ORIGIN, and the issuer and its discovery URL: IDENTITY_ISSUER and IDENTITY_OIDC_DISCOVERY_URL, or PATCH /admin-ui/admin/auth/front-door."
)

const foreignPath = new ControlError(
  "invalid_request",
  "return_to must be a path below /admin-ui, other than /admin-ui/session, without encoded slashes, backslashes or control characters.",
  { param: "return_to" }
)

const again = "Sign in again with GET /admin-ui/session/oidc."

const foreignState = new ControlError(
  "invalid_sign_in",
  `This browser has begun no sign-in with this state, or has begun another one since. ${again}`
)
const expiredState = new ControlError("invalid_sign_in", `The sign-in took longer than ten minutes. ${again}`)
const noCode = new ControlError("invalid_sign_in", `The identity provider sent neither a code nor an error. ${again}`)
const otherIssuer = new ControlError(
  "invalid_sign_in",
  `The answer is from another issuer than the one that is configured (iss). ${again}`
)

const isErrorWord = Schema.is(OidcProvider.ErrorWord)

const deniedBy = (error: string) =>
  new ControlError(
    "sign_in_refused",
    `The identity provider refused the sign-in${isErrorWord(error) ? ` (${error})` : ""}. Nobody was signed in.`
  )

const noGroup = ({ groupsClaim }: OidcClient) =>
  new ControlError(
    "sign_in_refused",
    `You are in no group that may sign in here. IDENTITY_SIGN_IN_GROUP_SCOPES lists the groups, and the claim ${groupsClaim} of the id token must name one of them.`
  )
