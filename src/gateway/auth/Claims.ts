import { Result } from "effect"
import type { IdentityProvider } from "../../identity/IdentityProvider.ts"
import * as TokenClaims from "../../identity/TokenClaims.ts"
import type { TokenFault, TokenRefused } from "../../identity/TokenRefused.ts"
import { GatewayError } from "../GatewayError.ts"
import { type Identity, type IdentityRequirements, unmetRequirement } from "./Identity.ts"

/** `expiresAt` is the token's expiry in epoch milliseconds, including the tolerated clock difference. */
export interface VerifiedIdentity {
  readonly identity: Identity
  readonly expiresAt: number
}

export const check = (
  claims: unknown,
  { audience, issuer }: IdentityProvider,
  rules: IdentityRequirements,
  now: number
): Result.Result<VerifiedIdentity, GatewayError> => {
  const acceptsTenant = (tid: unknown) => typeof tid === "string" && (rules.tenantId === null || tid === rules.tenantId)
  const current = TokenClaims.check(claims, { issuer, audience, acceptsTenant, skewMs: rules.skewMs }, now)
  return Result.isFailure(current) ? Result.fail(refusalOf(current.failure)) : identityOf(current.success, rules)
}

const identityOf = (
  { claims, expiresAt }: TokenClaims.CurrentClaims,
  rules: IdentityRequirements
): Result.Result<VerifiedIdentity, GatewayError> => {
  const { roles, scp, sub, tid, ver } = claims
  if (ver !== "1.0" && ver !== "2.0") return Result.fail(wrongVersion)
  const identity: Identity = {
    source: "identity_provider",
    tenantId: String(tid),
    subject: typeof sub === "string" ? sub : undefined,
    scopes: typeof scp === "string" ? scp.split(" ") : TokenClaims.stringsOf(scp),
    roles: TokenClaims.stringsOf(roles),
    groups: TokenClaims.groupsOf(claims, "groups")
  }
  const refusal = unmetRequirement(identity, rules)
  return refusal === undefined ? Result.succeed({ identity, expiresAt }) : Result.fail(refusal)
}

const invalid = new GatewayError({
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

const wrongIssuer = new GatewayError({
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

const keysUnavailable = new GatewayError({
  code: "invalid_identity_token",
  message:
    "The gateway cannot verify the identity token now because it could not load the keys of the identity provider. Try again shortly."
})

const refusals: Readonly<Record<TokenFault, GatewayError>> = {
  unverifiable: invalid,
  keys_unavailable: keysUnavailable,
  wrong_issuer: wrongIssuer,
  wrong_audience: wrongAudience,
  invalid_time: invalidTime,
  expired
}

export const refusalOf = ({ fault }: TokenRefused): GatewayError => refusals[fault]
