import { Effect, Option, Schema } from "effect"
import * as KeyState from "../../policy/KeyState.ts"
import type { BoundCredential } from "../../policy/routes/StoredCredential.ts"
import { Since } from "../../policy/SharedLimits.ts"
import type { Policies } from "../../policy/StoredPolicies.ts"
import { Database } from "../../services/Database.ts"
import { open as openCredential } from "../../state/SealedCredential.ts"
import * as StoredLayers from "../../state/StoredLayers.ts"
import { type Columns, RowReader, type Table } from "../../state/StoredRows.ts"

/** A virtual key as the request path needs it: its state, its policy, and the upstream credentials bound to it. */
export interface KeyRecord extends KeyState.KeyState, Policies {
  readonly id: string
  /** The beginning of its secret, by which operators know it. */
  readonly prefix: string
  readonly projectId: Option.Option<string>
  readonly projectName: Option.Option<string>
  readonly teamId: Option.Option<string>
  /** Until when the secret that led here is this key's: one that was rotated away has a grace. */
  readonly secretEndsAt: Option.Option<number>
  /** Raised by every change of the policy. */
  readonly policyVersion: number
  /** The numbers of the changes that set its own limits, and of the one that moved it to its project and team. */
  readonly limitsSince: Since
  readonly ownerSince: number
  /** Registered services that it is linked to, by itself or with its project. None: its policy decides alone. */
  readonly services: ReadonlyArray<string>
  readonly keyMapping: BoundCredential
  readonly projectMapping: BoundCredential
}

/** Why a known key may not be used now, or `undefined`. */
export const unusable = (
  key: KeyRecord,
  now: number
): { readonly code: keyof typeof KeyState.refusals; readonly message: string } | undefined => {
  const endedAt = Option.getOrUndefined(key.secretEndsAt)
  if (endedAt !== undefined && endedAt <= now) {
    return { code: "invalid_virtual_key", message: KeyState.rotated(endedAt) }
  }
  const code = KeyState.unusable(key, now)
  return code === undefined ? undefined : { code, message: KeyState.refusals[code] }
}

const Row = Schema.Struct({
  digest: Schema.String,
  id: Schema.String,
  key_prefix: Schema.String,
  project_id: Schema.NullOr(Schema.String),
  project_name: Schema.NullOr(Schema.String),
  team_id: Schema.NullOr(Schema.String),
  disabled: Schema.Boolean,
  revoked: Schema.Boolean,
  expires_at: Schema.NullOr(Schema.FiniteFromString),
  secret_ends_at: Schema.NullOr(Schema.FiniteFromString),
  used_at: Schema.FiniteFromString,
  policy: Schema.Unknown,
  guardrail_policy: Schema.Unknown,
  policy_version: Schema.FiniteFromString,
  limits_since: Since,
  owner_since: Schema.FiniteFromString,
  services: Schema.Array(Schema.String),
  key_mapping_id: Schema.NullOr(Schema.String),
  key_mapping: Schema.NullOr(Schema.String),
  key_mapping_origin: Schema.NullOr(Schema.String),
  project_mapping_id: Schema.NullOr(Schema.String),
  project_mapping: Schema.NullOr(Schema.String),
  project_mapping_origin: Schema.NullOr(Schema.String)
})
const decodeRow = Schema.decodeUnknownSync(Row)

/** What the database knows of a digest. `unreadable`: there is a key, and this version cannot decode its row. */
export type Stored = KeyRecord | "unreadable"

const table: Table<typeof Row.Type | { readonly digest: string; readonly id: undefined }> = {
  name: "api_keys",
  key: ["id"],
  decode: decodeRow,
  substitute: ({ digest }) => (typeof digest === "string" ? { digest, id: undefined } : undefined)
}

/**
 * The keys whose SHA-256 is one of `digests` (hex), or was until a rotation whose grace still lasts, in one query. What
 * is not in the answer is nobody's.
 */
export const load = Effect.fnUntraced(function* (digests: ReadonlyArray<string>) {
  const { sql } = yield* Database
  const reader = new RowReader()
  const rows =
    yield* sql<Columns>`SELECT asked.digest, k.id::text AS id, k.key_prefix, k.project_id::text AS project_id, p.name AS project_name, k.team_id, k.disabled,
    k.revoked_at IS NOT NULL AS revoked, (extract(epoch FROM k.expires_at) * 1000)::bigint::text AS expires_at,
    CASE WHEN k.key_hash <> decode(asked.digest, 'hex') THEN (extract(epoch FROM k.previous_key_expires_at) * 1000)::bigint::text END AS secret_ends_at,
    (extract(epoch FROM greatest(coalesce(k.last_used_at, k.created_at), k.enabled_at)) * 1000)::bigint::text AS used_at, k.policy, k.guardrail_policy,
    k.policy_version::text AS policy_version, k.limits_since, k.owner_since::text AS owner_since,
    ARRAY(SELECT service_name FROM key_service_links WHERE key_id = k.id AND k.project_id IS NULL
      UNION ALL SELECT service_name FROM project_service_links WHERE project_id = k.project_id) AS services,
    km.id::text AS key_mapping_id, km.sealed_credential AS key_mapping, km.credential_origin AS key_mapping_origin,
    pm.id::text AS project_mapping_id, pm.sealed_credential AS project_mapping, pm.credential_origin AS project_mapping_origin
    FROM api_keys k
    JOIN unnest(${digests}::text[]) AS asked (digest)
      ON k.key_hash = decode(asked.digest, 'hex') OR k.previous_key_hash = decode(asked.digest, 'hex')
    LEFT JOIN projects p ON p.id = k.project_id
    LEFT JOIN upstream_credential_mappings km ON km.key_id = k.id AND km.enabled
    LEFT JOIN upstream_credential_mappings pm ON pm.project_id = k.project_id AND pm.enabled`
  const found = new Map<string, Stored>()
  for (const row of reader.read(table, rows)) {
    found.set(row.digest, row.id === undefined ? "unreadable" : yield* recordOf(row))
  }
  for (const row of reader.unreadable) yield* Effect.logError("this version cannot decode the row of a key", row)
  return found
})

const recordOf = Effect.fnUntraced(function* (row: typeof Row.Type) {
  const own = StoredLayers.ofKey(row.id, row.policy_version, row)
  if (own.unreadable === true) {
    yield* Effect.logError("a key is refused: this version cannot decode its policy", { key_id: row.id })
  }
  const record: KeyRecord = {
    id: row.id,
    prefix: row.key_prefix,
    projectId: Option.fromNullOr(row.project_id),
    projectName: Option.fromNullOr(row.project_name),
    teamId: Option.fromNullOr(row.team_id),
    disabled: row.disabled,
    revoked: row.revoked,
    readable: own.unreadable !== true,
    expiresAt: Option.fromNullOr(row.expires_at),
    secretEndsAt: Option.fromNullOr(row.secret_ends_at),
    usedAt: row.used_at,
    policy: own.policy,
    guardrails: own.guardrails,
    policyVersion: own.version,
    limitsSince: row.limits_since,
    ownerSince: row.owner_since,
    services: row.services,
    keyMapping: {
      secret: yield* openCredential(row.key_mapping, `upstream_credential_mappings/${row.key_mapping_id}`),
      origin: row.key_mapping_origin
    },
    projectMapping: {
      secret: yield* openCredential(row.project_mapping, `upstream_credential_mappings/${row.project_mapping_id}`),
      origin: row.project_mapping_origin
    }
  }
  return record
})
