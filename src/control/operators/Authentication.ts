import { Context, Effect, Layer, Option, Redacted } from "effect"
import { type Headers, HttpServerRequest } from "effect/http"
import { isWellFormed, type keyPrefix, operatorTokenPrefix } from "../../state/Secret.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { Authorization, allows, Operator, RequiredScopes, type Scope } from "../api/schema/Security.ts"
import { OperatorTokens } from "./OperatorTokens.ts"

export const authenticate = Effect.gen(function* () {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const presented = yield* (yield* OperatorTokens).find(
    yield* bearerToken(headers["authorization"], operatorTokenPrefix)
  )
  if (Option.isNone(presented)) {
    return yield* new ControlError(
      "invalid_operator_token",
      "No operator token matches. Check that the token is complete and belongs to this installation."
    )
  }
  const { active, id, scopes } = presented.value
  if (!active)
    return yield* new ControlError(
      "disabled_operator_token",
      "The operator token was rotated, was revoked or has expired. Use another token."
    )
  return {
    tokenId: id,
    scopes,
    ip: clientAddressOf(headers),
    userAgent: headers["user-agent"]?.slice(0, maxUserAgentLength) ?? null
  }
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
  new ControlError(
    "insufficient_operator_scope",
    `The operator token lacks the scope ${required.length === 0 ? "*" : required.join(" or ")}. Use a token with that scope.`
  )

export const layer: Layer.Layer<Authorization, never, OperatorTokens> = Layer.effect(
  Authorization,
  Effect.gen(function* () {
    const tokens = yield* OperatorTokens
    return Authorization.of({
      operatorToken: (httpEffect, { endpoint }) =>
        Effect.gen(function* () {
          const operator = yield* Effect.provideService(authenticate, OperatorTokens, tokens)
          const required = Context.get(endpoint.annotations, RequiredScopes)
          if (!allows(operator.scopes, required)) return yield* insufficientScope(required)
          return yield* Effect.provideService(httpEffect, Operator, operator)
        })
    })
  })
)
