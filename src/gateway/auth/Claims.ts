import { Predicate, Result } from "effect"
import { GatewayError } from "../GatewayError.ts"
import type { IdentityProvider } from "./CallerAuth.ts"
import { type Identity, type IdentityRequirements, stringsOf, unmetRequirement } from "./Identity.ts"

/** `expiresAt` is the token's expiry in epoch milliseconds, including the tolerated clock difference. */
export interface VerifiedIdentity {
  readonly identity: Identity
  readonly expiresAt: number
}

export const check = (
  claims: unknown,
  provider: IdentityProvider,
  rules: IdentityRequirements,
  now: number
): Result.Result<VerifiedIdentity, GatewayError> => {
  if (!isClaims(claims)) return Result.fail(invalid)
  const { aud, exp, iat, iss, nbf, sub, tid, ver } = claims
  if (iss !== provider.issuer) return Result.fail(wrongIssuer)
  if (typeof tid !== "string" || (rules.tenantId !== null && tid !== rules.tenantId)) return Result.fail(wrongIssuer)
  if (aud !== provider.audience && !stringsOf(aud).includes(provider.audience)) return Result.fail(wrongAudience)
  if (!isTime(exp)) return Result.fail(invalidTime)
  const expiresAt = exp * 1000 + rules.skewMs
  if (expiresAt <= now) return Result.fail(expired)
  for (const from of [nbf, iat]) {
    if (from !== undefined && !(isTime(from) && from * 1000 - rules.skewMs <= now)) return Result.fail(invalidTime)
  }
  if (ver !== "1.0" && ver !== "2.0") return Result.fail(wrongVersion)
  const identity: Identity = {
    source: "identity_provider",
    tenantId: tid,
    subject: typeof sub === "string" ? sub : undefined,
    scopes: typeof claims.scp === "string" ? claims.scp.split(" ") : stringsOf(claims.scp),
    roles: stringsOf(claims.roles),
    groups: hasTruncatedGroups(claims) ? [] : stringsOf(claims.groups)
  }
  const refusal = unmetRequirement(identity, rules)
  return refusal === undefined ? Result.succeed({ identity, expiresAt }) : Result.fail(refusal)
}

interface Claims {
  readonly aud?: unknown
  readonly exp?: unknown
  readonly groups?: unknown
  readonly iat?: unknown
  readonly iss?: unknown
  readonly nbf?: unknown
  readonly roles?: unknown
  readonly scp?: unknown
  readonly sub?: unknown
  readonly tid?: unknown
  readonly ver?: unknown
}

const isClaims = (value: unknown): value is Claims => Predicate.isObject(value) && !Array.isArray(value)

const isTime = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value)

/** If a user has too many groups, the token refers to another source. The token's own group list is then ignored. */
const hasTruncatedGroups = (claims: Claims): boolean =>
  (Predicate.hasProperty(claims, "hasgroups") && claims.hasgroups === true) ||
  (Predicate.hasProperty(claims, "_claim_names") && Predicate.hasProperty(claims._claim_names, "groups"))

export const invalid = new GatewayError({
  code: "invalid_identity_token",
  message:
    "The identity token is not signed by the identity provider with an accepted algorithm. Get a token from the configured provider."
})

const invalidTime = new GatewayError({
  code: "invalid_identity_token",
  message:
    "The identity token must have an expiry time (exp) and must already be valid (nbf, iat). Get a new one from the identity provider."
})

const wrongVersion = new GatewayError({
  code: "invalid_identity_token",
  message: 'The identity token must state its version: "ver" must be "1.0" or "2.0".'
})

export const wrongIssuer = new GatewayError({
  code: "invalid_identity_issuer",
  message:
    "The identity token is from an issuer or tenant that this gateway does not accept. Get a token from the configured one."
})

const wrongAudience = new GatewayError({
  code: "invalid_identity_audience",
  message: "The identity token is meant for another audience. Request a token for this gateway's audience."
})

const expired = new GatewayError({
  code: "expired_identity_token",
  message: "The identity token has expired. Get a new one from the identity provider."
})
