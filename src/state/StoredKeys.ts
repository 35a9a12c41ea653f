import { Option, Schema } from "effect"
import type { KeyState } from "../policy/KeyState.ts"
import type { LimitRaise } from "../policy/LimitRaise.ts"
import type { OwnerScope, PolicyLayer } from "../policy/PolicyLayer.ts"
import { Since } from "../policy/SharedLimits.ts"
import * as StoredLayers from "./StoredLayers.ts"
import { raiseOf, raisesSql, StoredRaises } from "./StoredRaises.ts"

export interface StoredKey extends KeyState {
  readonly id: string
  readonly projectId: Option.Option<string>
  readonly teamId: Option.Option<string>
  /** The services that are linked to the key or its project. If the list is empty, only policies restrict services. */
  readonly services: ReadonlyArray<string>
  readonly ownLayer: PolicyLayer
  /** The number (epoch) of the configuration change that moved the key to its current project and team. */
  readonly ownerSince: number
  /** The exceptions for the key that had not ended when the row was read. */
  readonly raises: ReadonlyArray<LimitRaise>
}

export const lastUsedAtSql = "greatest(coalesce(k.last_used_at, k.created_at), k.enabled_at)"

/** Returns SQL for a time in milliseconds, as text. As a number, `infinity` would fail the whole statement. */
const millis = (time: string): string => `round(extract(epoch FROM ${time}) * 1000)::text`

export const columns = `k.id::text AS id, k.project_id::text AS project_id, k.team_id, k.disabled,
  k.revoked_at IS NOT NULL AS revoked, ${millis("k.expires_at")} AS expires_at, ${millis(lastUsedAtSql)} AS used_at,
  k.policy, k.guardrail_policy, k.policy_version::text AS policy_version, k.limits_since, k.owner_since::text AS owner_since, ${raisesSql},
  ARRAY(SELECT service_name FROM key_service_links WHERE key_id = k.id AND k.project_id IS NULL
    UNION ALL SELECT service_name FROM project_service_links WHERE project_id = k.project_id) AS services`

export const fields = {
  id: Schema.String,
  project_id: Schema.NullOr(Schema.String),
  team_id: Schema.NullOr(Schema.String),
  disabled: Schema.Boolean,
  revoked: Schema.Boolean,
  expires_at: Schema.NullOr(Schema.FiniteFromString),
  used_at: Schema.FiniteFromString,
  policy: Schema.Unknown,
  guardrail_policy: Schema.Unknown,
  policy_version: Schema.FiniteFromString,
  limits_since: Since,
  owner_since: Schema.FiniteFromString,
  raises: StoredRaises,
  services: Schema.Array(Schema.String)
}

const Row = Schema.Struct(fields)

export const keyOf = (row: typeof Row.Type): StoredKey => {
  const own = StoredLayers.keyLayer(row.id, row.policy_version, row)
  return {
    id: row.id,
    projectId: Option.fromNullOr(row.project_id),
    teamId: Option.fromNullOr(row.team_id),
    disabled: row.disabled,
    revoked: row.revoked,
    readable: own.unreadable !== true,
    expiresAt: Option.fromNullOr(row.expires_at),
    lastUsedAt: row.used_at,
    services: row.services,
    ownLayer: { ...own, since: row.limits_since },
    ownerSince: row.owner_since,
    raises: row.raises.map(raiseOf)
  }
}

export const ownerOf = ({ projectId, teamId }: StoredKey): OwnerScope => ({
  projectId: Option.getOrUndefined(projectId),
  teamId: Option.getOrUndefined(teamId)
})

/** SQL condition: `asked.digest` is the hex SHA-256 of the key's current or previous secret. */
export const matchesSecretSql = `k.key_hash = decode(asked.digest, 'hex')
  OR (k.previous_key_hash = decode(asked.digest, 'hex') AND k.previous_key_expires_at IS NOT NULL)`

export const secretEndsAtSql = `CASE WHEN k.key_hash <> decode(asked.digest, 'hex')
  THEN ${millis("k.previous_key_expires_at")} END AS secret_ends_at`
export const secretField = { secret_ends_at: Schema.NullOr(Schema.FiniteFromString) }
