import { GatewayError } from "../GatewayError.ts"

/** The user of a request, verified by a token of the identity provider or by headers that a trusted gateway signed. */
export interface Identity {
  readonly source: "identity_provider" | "trusted_gateway"
  readonly tenantId: string
  readonly subject: string | undefined
  readonly scopes: ReadonlyArray<string>
  readonly roles: ReadonlyArray<string>
  readonly groups: ReadonlyArray<string>
}

export interface IdentityRequirements {
  /** `null` accepts every tenant. */
  readonly tenantId: string | null
  readonly requiredScope: string | null
  readonly requiredRole: string | null
  /** The user must be in one of these groups. With an empty list, no group is required. */
  readonly allowedGroups: ReadonlyArray<string>
  readonly skewMs: number
}

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
    message: `The identity is valid but lacks a ${what} that this gateway requires. Ask an administrator to grant it.`
  })
