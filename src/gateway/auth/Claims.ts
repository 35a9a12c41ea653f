import { Predicate, Result } from "effect"
import { GatewayError } from "../GatewayError.ts"
import type { IdentityProvider } from "./CallerAuth.ts"
import { type Identity, type IdentityRequirements, stringsOf, unmetRequirement } from "./Identity.ts"

/** An identity, and until when its token proves it: epoch milliseconds, the skew included. */
export interface VerifiedIdentity {
  readonly identity: Identity
  readonly expiresAt: number
}

/** What a token whose signature is right says, in the order in which it is looked at. */
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
  const until = exp * 1000 + rules.skewMs
  if (until <= now) return Result.fail(expired)
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
  return refusal === undefined ? Result.succeed({ identity, expiresAt: until }) : Result.fail(refusal)
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

/** More groups than fit into a token: it says where they are, and which of them it names proves nothing. */
const hasTruncatedGroups = (claims: Claims): boolean =>
  (Predicate.hasProperty(claims, "hasgroups") && claims.hasgroups === true) ||
  (Predicate.hasProperty(claims, "_claim_names") && Predicate.hasProperty(claims._claim_names, "groups"))

export const invalid = new GatewayError({
  code: "invalid_identity_token",
  message: "The identity token is not signed by the identity provider, or not with an algorithm that is accepted."
})

const invalidTime = new GatewayError({
  code: "invalid_identity_token",
  message: "The identity token must say when it ends (exp), and must not be from the future (nbf, iat)."
})

const wrongVersion = new GatewayError({
  code: "invalid_identity_token",
  message: 'The identity token must say its version: "ver" is "1.0" or "2.0".'
})

export const wrongIssuer = new GatewayError({
  code: "invalid_identity_issuer",
  message: "The identity token is from another issuer or tenant than the one that this gateway accepts."
})

const wrongAudience = new GatewayError({
  code: "invalid_identity_audience",
  message: "The identity token is meant for another audience than this gateway."
})

const expired = new GatewayError({
  code: "expired_identity_token",
  message: "The identity token has expired; get a new one from the identity provider."
})
