import { Effect, Option, Schema } from "effect"
import { Database } from "../services/Database.ts"
import * as GuardrailPolicy from "./model/GuardrailPolicy.ts"
import { type KeyPolicy, KeyPolicyPatch, neutral, patched } from "./model/KeyPolicy.ts"
import { open as openCredential, type StoredCredential } from "./model/StoredCredential.ts"

/** A virtual key as the request path needs it: its state, its policy, and the upstream credentials bound to it. */
export interface KeyRecord {
  readonly id: string
  readonly projectId: Option.Option<string>
  readonly disabled: boolean
  readonly revoked: boolean
  /** Epoch milliseconds. */
  readonly expiresAt: Option.Option<number>
  readonly policy: KeyPolicy
  readonly guardrails: GuardrailPolicy.GuardrailPolicy
  /** Raised by every change of the policy. */
  readonly policyVersion: number
  readonly keyMapping: StoredCredential
  readonly projectMapping: StoredCredential
}

/** Why a known key may not be used now, or `undefined`. */
export const unusable = (
  record: KeyRecord,
  now: number
): "revoked_virtual_key" | "disabled_virtual_key" | "expired_virtual_key" | undefined => {
  if (record.revoked) return "revoked_virtual_key"
  if (record.disabled) return "disabled_virtual_key"
  return Option.exists(record.expiresAt, (expiresAt) => expiresAt <= now) ? "expired_virtual_key" : undefined
}

const Row = Schema.Struct({
  id: Schema.String,
  project_id: Schema.NullOr(Schema.String),
  disabled: Schema.Boolean,
  revoked: Schema.Boolean,
  expires_at: Schema.NullOr(Schema.FiniteFromString),
  policy: KeyPolicyPatch,
  policy_version: Schema.FiniteFromString,
  guardrail_policy: GuardrailPolicy.GuardrailPolicyPatch,
  key_mapping_id: Schema.NullOr(Schema.String),
  key_mapping: Schema.NullOr(Schema.String),
  project_mapping_id: Schema.NullOr(Schema.String),
  project_mapping: Schema.NullOr(Schema.String)
})
const decodeRows = Schema.decodeUnknownEffect(Schema.Array(Row))

/** The key whose SHA-256 is `digest` (hex), in one query. */
export const load = Effect.fnUntraced(function* (digest: string) {
  const { sql } = yield* Database
  const rows = yield* sql`SELECT k.id::text AS id, k.project_id::text AS project_id, k.disabled,
    k.revoked_at IS NOT NULL AS revoked, (extract(epoch FROM k.expires_at) * 1000)::bigint::text AS expires_at, k.policy, k.policy_version::text AS policy_version, k.guardrail_policy,
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
    disabled: row.disabled,
    revoked: row.revoked,
    expiresAt: Option.fromNullOr(row.expires_at),
    policy: patched(neutral, row.policy),
    policyVersion: row.policy_version,
    guardrails: GuardrailPolicy.of(row.guardrail_policy),
    keyMapping: yield* openCredential(row.key_mapping, `upstream_credential_mappings/${row.key_mapping_id}`),
    projectMapping: yield* openCredential(row.project_mapping, `upstream_credential_mappings/${row.project_mapping_id}`)
  })
})
