import { Context, DateTime, Duration, Effect, Layer, Option, Redacted } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { isWellFormed, keyPrefix, operatorTokenPrefix } from "../../state/Secret.ts"
import type { SignedIn } from "../api/SessionApi.ts"
import { ControlError, type Refused, type RequestId } from "../api/schema/Errors.ts"
import { Operator } from "../api/schema/Security.ts"
import { transformResponse } from "../http/ResponseTransform.ts"
import { type KeyRefused, PresentedKeys } from "../keys/KeyAuthentication.ts"
import { callerOf, findToken } from "../operators/Authentication.ts"
import { OperatorTokens } from "../operators/OperatorTokens.ts"
import { ControlOrigin } from "../session/ControlOrigin.ts"
import { ListenerSessions } from "../session/ListenerSessions.ts"
import {
  cookieOf,
  crossOrigin,
  csrfHeader,
  csrfOf,
  isInsecurePage,
  isNotCrossOrigin,
  presentedSessions
} from "../session/PresentedSession.ts"
import * as SessionCookie from "../session/SessionCookie.ts"
import { type Session, type SessionOwner, Sessions } from "../session/Sessions.ts"
import * as PerMinute from "../store/PerMinute.ts"
import type { StoreFailure } from "../store/Rows.ts"

/** The sign-ins of one token or key. Each is an event in the one chain of the audit log. */
const maxPerMinute = 10

type Request = HttpServerRequest.HttpServerRequest | RequestId

type SignInRefused =
  | KeyRefused
  | Refused<
      | "malformed_authorization"
      | "invalid_operator_token"
      | "disabled_operator_token"
      | "cross_origin_request"
      | "insecure_origin"
      | "too_many_sign_ins"
    >

/** Signs browsers in and out. The responses set and remove the session cookie. */
export class SignIn extends Context.Service<
  SignIn,
  {
    readonly signIn: (token: Redacted.Redacted) => Effect.Effect<SignedIn, SignInRefused | StoreFailure, Request>
    readonly show: Effect.Effect<
      SignedIn,
      KeyRefused | Refused<"invalid_session" | "cross_origin_request" | "missing_csrf_header"> | StoreFailure,
      Request
    >
    readonly signOut: Effect.Effect<
      void,
      Refused<"cross_origin_request" | "missing_csrf_header"> | StoreFailure,
      Request
    >
  }
>()("svc/control/SignIn") {
  static readonly layer = Layer.suspend(() => Layer.effect(SignIn, make))
}

const make = Effect.gen(function* () {
  const sessions = yield* Sessions
  const tokens = yield* OperatorTokens
  const keys = yield* PresentedKeys
  const origin = yield* ControlOrigin
  const listener = yield* ListenerSessions
  const signInRate = PerMinute.make(maxPerMinute)

  const setCookie = (value: string, maxAge?: Duration.Duration) => {
    const { name, options } = cookieOf(origin, listener, maxAge)
    return transformResponse((response) => HttpServerResponse.setCookieUnsafe(response, name, value, options))
  }

  const ownerOf = Effect.fnUntraced(function* (token: Redacted.Redacted) {
    const raw = Redacted.value(token)
    if (isWellFormed(operatorTokenPrefix, raw)) {
      if (listener.holdersOnly) return yield* noOperators
      const { id, scopes } = yield* Effect.provideService(findToken(token), OperatorTokens, tokens)
      return { owner: { _tag: "OperatorToken", id } satisfies SessionOwner, scopes, tokenId: id }
    }
    if (!isWellFormed(keyPrefix, raw)) return yield* malformed
    const { keyId } = yield* keys.authenticatePerson(token)
    return { owner: { _tag: "GatewayKey", id: keyId } satisfies SessionOwner, scopes: [], tokenId: null }
  })

  /** The session of an operator is none on a listener for holders of keys, so that it can also not end there. */
  const ofListener = Option.filter(({ owner }: Session) => !listener.holdersOnly || owner._tag === "GatewayKey")

  /** The session that the browser had ends, also if another page of this host has set it. */
  const endPrevious = Effect.gen(function* () {
    const { headers } = yield* HttpServerRequest.HttpServerRequest
    const candidates = SessionCookie.sessionCandidates(headers["cookie"], cookieOf(origin, listener).name)
    const previous = ofListener(yield* sessions.find(candidates))
    if (Option.isSome(previous)) yield* sessions.end(previous.value)
  })

  const presented = presentedSessions.pipe(
    Effect.provideService(ControlOrigin, origin),
    Effect.provideService(ListenerSessions, listener)
  )

  const present = Effect.gen(function* () {
    return ofListener(yield* sessions.find(yield* presented))
  })

  /** Tells the holder of a key that was disabled, revoked or has expired so, as whoever sends the key is told. */
  const refuseEndedKey = Effect.gen(function* () {
    const digest = yield* sessions.keyDigestOf(yield* presented)
    if (Option.isSome(digest)) yield* keys.authenticateDigest(digest.value)
  })

  const asOperator = <A, E, R>(operator: Omit<Operator["Service"], "ip" | "userAgent">, work: Effect.Effect<A, E, R>) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) =>
      Effect.provideService(work, Operator, { ...operator, ...callerOf(headers) })
    )

  return SignIn.of({
    signIn: Effect.fn("SignIn.signIn")(function* (token) {
      const { headers } = yield* HttpServerRequest.HttpServerRequest
      // Otherwise another site could sign a browser in as somebody else.
      if (!isNotCrossOrigin(headers, origin)) return yield* crossOrigin
      if (isInsecurePage(headers)) return yield* insecureOrigin
      const { owner, scopes, tokenId } = yield* ownerOf(token)
      const seconds = yield* signInRate(owner.id)
      if (seconds > 0) return yield* tooMany(seconds)
      return yield* asOperator(
        { tokenId, scopes },
        Effect.gen(function* () {
          const value = Redacted.value(yield* sessions.create(owner, token))
          const session = yield* sessions.find([value])
          if (Option.isNone(session)) return yield* endedMeanwhile
          yield* endPrevious
          yield* setCookie(value)
          return signedIn(session.value)
        })
      )
    }),

    show: Effect.gen(function* () {
      const session = yield* present
      if (Option.isSome(session)) return signedIn(session.value)
      yield* refuseEndedKey
      return yield* nobody
    }).pipe(Effect.withSpan("SignIn.show")),

    signOut: Effect.gen(function* () {
      const session = yield* present
      if (Option.isSome(session)) {
        const { owner, scopes } = session.value
        const tokenId = owner._tag === "OperatorToken" ? owner.id : null
        yield* asOperator({ tokenId, scopes }, sessions.end(session.value))
      }
      yield* setCookie("", Duration.zero)
    }).pipe(Effect.withSpan("SignIn.signOut"))
  })
})

const signedIn = ({ expiresAt, name, owner, scopes, value }: Session): SignedIn => ({
  kind: owner._tag === "OperatorToken" ? "operator_token" : "gateway_key",
  id: owner.id,
  name,
  scopes: owner._tag === "OperatorToken" ? scopes : ["self"],
  expires_at: DateTime.toUtc(expiresAt),
  csrf: { header: csrfHeader, value: csrfOf(Redacted.value(value)) }
})

const malformed = new ControlError(
  "malformed_authorization",
  `This is not a complete token. Paste all of it: an operator token begins with ${operatorTokenPrefix}, a gateway key with ${keyPrefix}.`,
  { param: "token" }
)

const noOperators = new ControlError(
  "malformed_authorization",
  `Operator tokens are not accepted here: this address is for holders of gateway keys (${keyPrefix}…). Sign in at the address of the control listener.`,
  { param: "token" }
)

const insecureOrigin = new ControlError(
  "insecure_origin",
  "Sessions need https, or localhost: from other pages, browsers do not say which page sent a request. Put TLS in front of this listener, or open it at localhost, such as through an SSH tunnel."
)

const tooMany = (seconds: number) =>
  Effect.andThen(
    transformResponse((response) => HttpServerResponse.setHeader(response, "retry-after", String(seconds))),
    new ControlError(
      "too_many_sign_ins",
      `This token or key has signed in ${maxPerMinute} times within a minute. Sign in again in ${seconds} seconds, or use a session that it has.`
    )
  )

const endedMeanwhile = new ControlError(
  "disabled_operator_token",
  "The token was rotated or revoked meanwhile. Use another token."
)

const nobody = new ControlError(
  "invalid_session",
  "Nobody is signed in here, or the session has ended. Sign in with POST /admin-ui/session."
)
