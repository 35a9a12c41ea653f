import { Effect, Option, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import type { KeyState } from "../../policy/KeyState.ts"
import { everywhere, indexed, LayerKind, type OwnerScope, type PolicyLayer } from "../../policy/PolicyLayer.ts"
import { PriceList } from "../../policy/PriceList.ts"
import * as StoredLayers from "../../state/StoredLayers.ts"
import { type Columns, RowReader } from "../../state/StoredRows.ts"
import { rows } from "../store/Store.ts"

/** A key as a decision looks at it. */
export interface GovernedKey {
  readonly id: string
  readonly projectId: string | undefined
  readonly teamId: string | undefined
  readonly state: KeyState
  /** Registered services that it is linked to, by itself or with its project. */
  readonly services: ReadonlyArray<string>
  /** Its own policy, as the last of the layers. */
  readonly own: PolicyLayer
}

/** What the gateway decides by, as it stands in the database. */
export const make = (sql: SqlClient.SqlClient) => ({
  key: (id: string) =>
    Effect.map(
      keys.first(sql`SELECT id::text AS id, project_id::text AS project_id, team_id, disabled, revoked_at IS NOT NULL AS revoked,
        round(extract(epoch FROM expires_at) * 1000)::text AS expires_at,
        round(extract(epoch FROM greatest(coalesce(last_used_at, created_at), enabled_at)) * 1000)::text AS used_at,
        policy, guardrail_policy, policy_version::text AS policy_version,
        ARRAY(SELECT service_name FROM key_service_links WHERE key_id = api_keys.id AND project_id IS NULL
          UNION ALL SELECT service_name FROM project_service_links WHERE project_id = api_keys.project_id) AS services
        FROM api_keys WHERE id = ${id}`),
      (row): GovernedKey | undefined => {
        if (row === undefined) return undefined
        const own = StoredLayers.ofKey(row.id, row.policy_version, row)
        return {
          id: row.id,
          projectId: row.project_id ?? undefined,
          teamId: row.team_id ?? undefined,
          state: {
            disabled: row.disabled,
            revoked: row.revoked,
            readable: own.unreadable !== true,
            expiresAt: Option.fromNullOr(row.expires_at),
            usedAt: row.used_at
          },
          services: row.services,
          own
        }
      }
    ),

  /** All of them. */
  layers: Effect.map(sql<Columns>`SELECT ${sql.literal(StoredLayers.columns)} FROM policy_layers`, (found) =>
    indexed(new RowReader().read(StoredLayers.table, found))
  ),

  /** The layers that apply to every request of a key of this project and team. */
  layersOver: (owner: OwnerScope) =>
    Effect.map(
      sql<Columns>`SELECT ${sql.literal(StoredLayers.columns)} FROM policy_layers WHERE ${sql.or([
        sql`layer_kind = 'global'`,
        sql`(layer_kind = 'project' AND scope_id = ${owner.projectId ?? null})`,
        sql`(layer_kind = 'team' AND scope_id = ${owner.teamId ?? null})`,
        sql`layer_kind <> ALL(${LayerKind.literals}::text[])`
      ])}`,
      (found) =>
        everywhere(indexed(new RowReader().read(StoredLayers.table, found)), owner).filter(
          (layer) => layer !== undefined
        )
    ),

  /** Those that may be the price of one of `models`. */
  prices: (models: ReadonlyArray<string>) =>
    Effect.map(
      prices.all(sql`SELECT model, input_nanos_per_million::text AS input, output_nanos_per_million::text AS output,
        cached_input_nanos_per_million::text AS cached_input, cache_write_nanos_per_million::text AS cache_write
        FROM model_prices WHERE model = ANY(${models}::text[]) OR right(model, 1) = '*'`),
      (found) =>
        new PriceList(
          found.map(({ cache_write, cached_input, input, model, output }) => [
            model,
            { input, output, cachedInput: cached_input, cacheWrite: cache_write }
          ])
        )
    )
})

const keys = rows(
  Schema.Struct({
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
    services: Schema.Array(Schema.String)
  }),
  { table: "api_keys", key: ["id"] }
)

const prices = rows(
  Schema.Struct({
    model: Schema.String,
    input: Schema.FiniteFromString,
    output: Schema.FiniteFromString,
    cached_input: Schema.NullOr(Schema.FiniteFromString),
    cache_write: Schema.NullOr(Schema.FiniteFromString)
  }),
  { table: "model_prices", key: ["model"] }
)
