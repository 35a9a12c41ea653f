import { Effect, Option, Schema } from "effect"
import { Database } from "../services/Database.ts"
import * as GuardrailPolicy from "./model/GuardrailPolicy.ts"
import { type KeyPolicy, KeyPolicyPatch, neutral, patched } from "./model/KeyPolicy.ts"
import type { KeyState } from "./model/KeyState.ts"
import { open as openCredential, type StoredCredential } from "./StoredCredential.ts"

/** A virtual key as the request path needs it: its state, its policy, and the upstream credentials bound to it. */
export interface KeyRecord extends KeyState {
  readonly id: string
  readonly projectId: Option.Option<string>
  readonly teamId: Option.Option<string>
  readonly policy: KeyPolicy
  readonly guardrails: GuardrailPolicy.GuardrailPolicy
  /** Raised by every change of the policy. */
  readonly policyVersion: number
  readonly keyMapping: StoredCredential
  readonly projectMapping: StoredCredential
}

const Row = Schema.Struct({
  id: Schema.String,
  project_id: Schema.NullOr(Schema.String),
  team_id: Schema.NullOr(Schema.String),
  disabled: Schema.Boolean,
  revoked: Schema.Boolean,
  expires_at: Schema.NullOr(Schema.FiniteFromString),
  used_at: Schema.FiniteFromString,
  policy: KeyPolicyPatch,
  guardrail_policy: GuardrailPolicy.GuardrailPolicyPatch,
  policy_version: Schema.FiniteFromString,
  key_mapping_id: Schema.NullOr(Schema.String),
  key_mapping: Schema.NullOr(Schema.String),
  project_mapping_id: Schema.NullOr(Schema.String),
  project_mapping: Schema.NullOr(Schema.String)
})
const decodeRows = Schema.decodeUnknownEffect(Schema.Array(Row))

/** The key whose SHA-256 is `digest` (hex), in one query. */
export const load = Effect.fnUntraced(function* (digest: string) {
  const { sql } = yield* Database
  const rows = yield* sql`SELECT k.id::text AS id, k.project_id::text AS project_id, k.team_id, k.disabled,
    k.revoked_at IS NOT NULL AS revoked, (extract(epoch FROM k.expires_at) * 1000)::bigint::text AS expires_at,
    (extract(epoch FROM greatest(coalesce(k.last_used_at, k.created_at), k.enabled_at)) * 1000)::bigint::text AS used_at, k.policy, k.guardrail_policy,
    k.policy_version::text AS policy_version,
    km.id::text AS key_mapping_id, km.sealed_credential AS key_mapping,
    pm.id::text AS project_mapping_id, pm.sealed_credential AS project_mapping
    FROM api_keys k
    LEFT JOIN upstream_credential_mappings km ON km.key_id = k.id AND km.enabled
    LEFT JOIN upstream_credential_mappings pm ON pm.project_id = k.project_id AND pm.enabled
    WHERE k.key_hash = decode(${digest}, 'hex')`
  const [row] = yield* decodeRows(rows)
  if (row === undefined) return Option.none<KeyRecord>()
  return Option.some<KeyRecord>({
    id: row.id,
    projectId: Option.fromNullOr(row.project_id),
    teamId: Option.fromNullOr(row.team_id),
    disabled: row.disabled,
    revoked: row.revoked,
    expiresAt: Option.fromNullOr(row.expires_at),
    usedAt: row.used_at,
    policy: patched(neutral, row.policy),
    guardrails: GuardrailPolicy.of(row.guardrail_policy),
    policyVersion: row.policy_version,
    keyMapping: yield* openCredential(row.key_mapping, `upstream_credential_mappings/${row.key_mapping_id}`),
    projectMapping: yield* openCredential(row.project_mapping, `upstream_credential_mappings/${row.project_mapping_id}`)
  })
})
