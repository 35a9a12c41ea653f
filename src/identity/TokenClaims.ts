import { Predicate, Result } from "effect"
import { type TokenFault, TokenRefused } from "./TokenRefused.ts"

export interface ClaimRules {
  readonly issuer: string
  readonly acceptsTenant: (tenantId: unknown) => boolean
  readonly audience: string
  readonly skewMs: number
}

export interface CurrentClaims {
  readonly claims: Claims
  /** The token's expiry in epoch milliseconds, including the tolerated clock difference. */
  readonly expiresAt: number
}

/** Checks what every token of the identity provider must say: its issuer, audience and times. */
export const check = (claims: unknown, rules: ClaimRules, now: number): Result.Result<CurrentClaims, TokenRefused> => {
  if (!isClaims(claims)) return refused("unverifiable")
  const { aud, exp, iat, iss, nbf, tid } = claims
  if (iss !== rules.issuer || !rules.acceptsTenant(tid)) return refused("wrong_issuer")
  if (aud !== rules.audience && !stringsOf(aud).includes(rules.audience)) return refused("wrong_audience")
  if (!isTime(exp)) return refused("invalid_time")
  const expiresAt = exp * 1000 + rules.skewMs
  if (expiresAt <= now) return refused("expired")
  for (const from of [nbf, iat]) {
    if (from !== undefined && !(isTime(from) && from * 1000 - rules.skewMs <= now)) return refused("invalid_time")
  }
  return Result.succeed({ claims, expiresAt })
}

const refused = (fault: TokenFault) => Result.fail(new TokenRefused({ fault }))

export interface Claims {
  readonly [name: string]: unknown
  readonly aud?: unknown
  readonly exp?: unknown
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
export const groupsOf = (claims: Claims, name: string): ReadonlyArray<string> => {
  const isTruncated = claims["hasgroups"] === true || Predicate.hasProperty(claims["_claim_names"], name)
  return isTruncated ? [] : stringsOf(claims[name])
}

export const stringsOf = (value: unknown): ReadonlyArray<string> =>
  Array.isArray(value) ? value.filter((item) => typeof item === "string") : []
