import { Context, Effect, Layer, Option, Redacted } from "effect"
import { type Headers, HttpServerRequest } from "effect/http"
import { isWellFormed, type keyPrefix, operatorTokenPrefix } from "../../state/Secret.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { Authorization, allows, Operator, RequiredScopes, type Scope } from "../api/schema/Security.ts"
import { ControlOrigin } from "../session/ControlOrigin.ts"
import { ListenerSessions } from "../session/ListenerSessions.ts"
import { presentedSessions } from "../session/PresentedSession.ts"
import { Sessions } from "../session/Sessions.ts"
import { OperatorTokens } from "./OperatorTokens.ts"

/** Authenticates by the operator token in `Authorization`. */
export const authenticateToken = Effect.gen(function* () {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const { id, scopes } = yield* findToken(yield* bearerToken(headers["authorization"], operatorTokenPrefix))
  return { tokenId: id, scopes, ...callerOf(headers) }
})

/** Authenticates by `Authorization`. Only a request without this header is authenticated by its session cookie. */
export const authenticate = Effect.gen(function* () {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const session = yield* findSession
  if (Option.isNone(session)) return yield* authenticateToken
  const { owner, scopes } = session.value
  return owner._tag === "OperatorToken" ? { tokenId: owner.id, scopes, ...callerOf(headers) } : yield* noToken
})

/** Returns the services of `findSession`. Other parts of the layer's context must not replace those of a request. */
export const sessionServices = Effect.gen(function* () {
  return Context.make(Sessions, yield* Sessions).pipe(
    Context.add(ControlOrigin, yield* ControlOrigin),
    Context.add(ListenerSessions, yield* ListenerSessions)
  )
})

/** Returns the services of `authenticate`. */
export const authenticationServices = Effect.gen(function* () {
  return Context.add(yield* sessionServices, OperatorTokens, yield* OperatorTokens)
})

/** Returns the session of a request that has a session cookie, and no `Authorization`. */
export const findSession = Effect.gen(function* () {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  if (headers["authorization"] !== undefined) return Option.none()
  const presented = yield* presentedSessions
  if (presented.length === 0) return Option.none()
  const session = yield* (yield* Sessions).find(presented)
  return Option.isSome(session) ? session : yield* sessionEnded
})

const noToken = new ControlError(
  "invalid_session",
  "The session is that of a gateway key, and this path needs one of an operator token. Sign in with an operator token."
)

const sessionEnded = new ControlError(
  "invalid_session",
  "The session has ended: it was not used for 12 hours, began 24 hours ago at the identity provider, was signed out, or its token or key is no longer valid. Sign in again with POST /admin-ui/session."
)

export const findToken = Effect.fnUntraced(function* (token: Redacted.Redacted) {
  const presented = yield* (yield* OperatorTokens).find(token)
  if (Option.isNone(presented)) {
    return yield* new ControlError(
      "invalid_operator_token",
      "No operator token matches. Check that the token is complete and belongs to this installation."
    )
  }
  if (!presented.value.active)
    return yield* new ControlError(
      "disabled_operator_token",
      "The operator token was rotated, was revoked or has expired. Use another token."
    )
  return presented.value
})

/** Returns what audit events record of a caller beside the token. */
export const callerOf = (headers: Headers.Headers) => ({
  ip: clientAddressOf(headers),
  userAgent: headers["user-agent"]?.slice(0, maxUserAgentLength) ?? null
})

const maxUserAgentLength = 512
const maxAddressLength = 64

/** Returns the bearer token. The scheme name is case-insensitive, and spaces follow it (RFC 9110 §11). */
export const bearerToken = (
  header: string | undefined,
  prefix: typeof operatorTokenPrefix | typeof keyPrefix
): Effect.Effect<Redacted.Redacted, Refused<"missing_authorization" | "malformed_authorization">> => {
  if (header === undefined) {
    return Effect.fail(
      new ControlError(
        "missing_authorization",
        `The Authorization header is required. Send "Authorization: Bearer ${prefix}…".`
      )
    )
  }
  const token = /^bearer +(\S+) *$/i.exec(header)?.[1]
  return token !== undefined && isWellFormed(prefix, token)
    ? Effect.succeed(Redacted.make(token))
    : Effect.fail(new ControlError("malformed_authorization", `The Authorization header must be "Bearer ${prefix}…".`))
}

/** Returns the client address that a proxy reports. Clients can forge the address, so only the audit log uses it. */
const clientAddressOf = (headers: Headers.Headers): string | null => {
  const address = (headers["x-forwarded-for"]?.split(",", 1)[0] ?? headers["x-real-ip"])?.trim()
  return address ? address.slice(0, maxAddressLength) : null
}

export const insufficientScope = (required: ReadonlyArray<Scope>): Refused<"insufficient_operator_scope"> =>
  scopesMissing(required.length === 0 ? "*" : required.join(" or "))

const scopesMissing = (scopes: string) =>
  new ControlError(
    "insufficient_operator_scope",
    `The operator token lacks the scope ${scopes}. Use a token with that scope.`
  )

/** Fails unless the caller holds all of `needed`. For endpoints whose declared scopes are alternatives. */
export const requireAllScopes = Effect.fnUntraced(function* (needed: ReadonlyArray<Scope>) {
  const { scopes } = yield* Operator
  const missing = needed.filter((scope) => !allows(scopes, [scope]))
  if (missing.length > 0) return yield* scopesMissing(missing.join(" and "))
})

export const layer: Layer.Layer<Authorization, never, OperatorTokens | Sessions> = Layer.effect(
  Authorization,
  Effect.gen(function* () {
    const services = yield* authenticationServices
    return Authorization.of({
      operatorToken: (httpEffect, { endpoint }) =>
        Effect.gen(function* () {
          const operator = yield* Effect.provideContext(authenticate, services)
          const required = Context.get(endpoint.annotations, RequiredScopes)
          if (!allows(operator.scopes, required)) return yield* insufficientScope(required)
          return yield* Effect.provideService(httpEffect, Operator, operator)
        })
    })
  })
)
