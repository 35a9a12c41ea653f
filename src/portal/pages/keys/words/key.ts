import type { QueryOf, ResponseOf } from "../../../api/Endpoints.ts"
import type { ConfigurationSections } from "../../../shared/words/CopyAs.tsx"
import type { Meaning } from "../../../shared/words/StatusWord.tsx"

export const keysPath = "/admin-ui/admin/keys"
export const keyPath = "/admin-ui/admin/keys/:id"
/** What is old once a key has changed. */
export const staleAfterKeys = [keysPath, keyPath, "/admin-ui/admin/policy/effective", "/admin-ui/admin/audit-events"]

export type Key = ResponseOf<"GET", typeof keysPath>[number]

/** The filters and the order of a list of keys, as the address has them. */
export interface KeyQuery {
  readonly q?: string
  readonly state?: Key["state"]
  readonly tag?: string
  readonly team_id?: string
  readonly project_id?: string
  readonly near_limit?: "true"
  readonly sort_by?: Extract<QueryOf<"GET", typeof keysPath>["sort_by"], string>
  readonly sort_order?: "asc" | "desc"
}

export const keyName = ({ key_prefix, name }: Pick<Key, "name" | "key_prefix">): string => name ?? key_prefix

export const meaningOfState: Readonly<Record<Key["state"], Meaning>> = {
  active: "good",
  disabled: "idle",
  expired: "warning",
  revoked: "bad"
}

/** A key as flat fields, by the names that the API has for them. */
export const keyFields = (key: Key): Readonly<Record<string, unknown>> => ({
  name: key.name,
  description: key.description,
  owner_email: key.owner_email,
  tags: key.tags,
  owner_type: key.owner_type,
  project_id: key.project_id,
  team_id: key.team_id,
  service_names: key.service_names,
  disabled: key.disabled,
  expires_at: key.expires_at,
  rotation_due_at: key.rotation_due_at,
  holder_rotation: key.holder_rotation,
  ...prefixed("policy", withoutVersion(key.policy)),
  ...prefixed("guardrail_policy", key.guardrail_policy)
})

const withoutVersion = ({ policy_version: _, ...policy }: Key["policy"]) => policy

const prefixed = (prefix: string, fields: object): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [`${prefix}.${name}`, value]))

/** What the configuration document says of the key. */
export const configurationOf = ({ guardrail_policy, policy, ...key }: Key): ConfigurationSections => ({
  keys: [
    {
      id: key.id,
      key_prefix: key.key_prefix,
      name: key.name,
      owner_type: key.owner_type,
      project: key.project_name,
      service_names: key.service_names,
      team_id: key.team_id,
      disabled: key.disabled,
      expires_at: key.expires_at,
      rotation_due_at: key.rotation_due_at,
      policy: withoutVersion(policy),
      guardrail_policy
    }
  ]
})
