import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { everywhere, indexed, LayerKind, type OwnerScope } from "../../policy/PolicyLayer.ts"
import { PriceList } from "../../policy/PriceList.ts"
import * as StoredKeys from "../../state/StoredKeys.ts"
import * as StoredLayers from "../../state/StoredLayers.ts"
import { type Columns, RowReader } from "../../state/StoredRows.ts"
import { rows } from "../store/Store.ts"

/** What the gateway decides by, as it stands in the database. */
export const make = (sql: SqlClient.SqlClient) => ({
  key: (id: string) =>
    Effect.map(
      keys.first(sql`SELECT ${sql.literal(StoredKeys.columns)} FROM api_keys k WHERE k.id = ${id}`),
      (row) => row && StoredKeys.keyOf(row)
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

const keys = rows(Schema.Struct(StoredKeys.fields), { table: "api_keys", key: ["id"] })

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
