import { GatewayError } from "../GatewayError.ts"

/**
 * Who a request comes from, proven by a token of the identity provider or by the signed headers of a trusted gateway.
 */
export interface Identity {
  readonly source: "identity_provider" | "trusted_gateway"
  readonly tenantId: string
  readonly subject: string | undefined
  readonly scopes: ReadonlyArray<string>
  readonly roles: ReadonlyArray<string>
  readonly groups: ReadonlyArray<string>
}

/** What an identity must have. */
export interface IdentityRequirements {
  /** `null`: any tenant. */
  readonly tenantId: string | null
  readonly requiredScope: string | null
  readonly requiredRole: string | null
  /** One of them; empty: none is asked for. */
  readonly allowedGroups: ReadonlyArray<string>
  /** How far the clocks of two machines may be apart, in milliseconds. */
  readonly skewMs: number
}

/** Why an identity that is proven may not come in, or `undefined`. */
export const unmetRequirement = (
  { groups, roles, scopes }: Identity,
  rules: IdentityRequirements
): GatewayError | undefined => {
  if (rules.requiredScope !== null && !scopes.includes(rules.requiredScope)) return lacksError("scope")
  if (rules.requiredRole !== null && !roles.includes(rules.requiredRole)) return lacksError("role")
  if (rules.allowedGroups.length > 0 && !rules.allowedGroups.some((group) => groups.includes(group))) {
    return lacksError("group")
  }
  return undefined
}

const lacksError = (what: "scope" | "role" | "group") =>
  new GatewayError({
    code: "insufficient_identity_authorization",
    message: `The identity is known and lacks a ${what} that this gateway asks for.`
  })

/** An array of texts as a token or a header states it; anything else is none. */
export const stringsOf = (value: unknown): ReadonlyArray<string> =>
  Array.isArray(value) ? value.filter((item) => typeof item === "string") : []
