import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { indexLayers, LayerKind, type OwnerScope, ownerLayers } from "../../policy/PolicyLayer.ts"
import { PriceList } from "../../policy/PriceList.ts"
import * as StoredKeys from "../../state/StoredKeys.ts"
import * as StoredLayers from "../../state/StoredLayers.ts"
import { type RowColumns, RowReader } from "../../state/StoredRows.ts"
import { storedRows } from "../store/Rows.ts"

/** Reads the stored policies, keys and prices with which the gateway decides. */
export const make = (sql: SqlClient.SqlClient) => ({
  key: (id: string) =>
    Effect.map(
      keyRows.first(sql`SELECT ${sql.literal(StoredKeys.columns)} FROM api_keys k WHERE k.id = ${id}`),
      (row) => row && StoredKeys.keyOf(row)
    ),

  layers: Effect.map(
    sql<RowColumns>`SELECT ${sql.literal(StoredLayers.columns)} FROM policy_layers WHERE enabled`,
    (stored) => indexLayers(new RowReader().read(StoredLayers.table, stored))
  ),

  /** Returns the layers of an owner, without the layers of routes and models. */
  layersForOwner: (owner: OwnerScope) =>
    Effect.map(layersForOwners(sql, [owner]), (layers) =>
      ownerLayers(layers, owner).filter((layer) => layer !== undefined)
    ),

  /** Returns the layers of several owners, without the layers of routes and models. */
  layersForOwners: (owners: ReadonlyArray<OwnerScope>) => layersForOwners(sql, owners),

  /** Returns the prices of `models` and of all patterns. The caller must match the patterns. */
  prices: (models: ReadonlyArray<string>) =>
    readPrices(
      sql`SELECT ${priceColumns(sql)} FROM model_prices WHERE model = ANY(${models}::text[]) OR right(model, 1) = '*'`
    ),

  allPrices: readPrices(sql`SELECT ${priceColumns(sql)} FROM model_prices`)
})

const priceColumns = (sql: SqlClient.SqlClient) =>
  sql.literal(`model, input_nanos_per_million::text AS input, output_nanos_per_million::text AS output,
    cached_input_nanos_per_million::text AS cached_input, cache_write_nanos_per_million::text AS cache_write`)

const readPrices = <E, R>(statement: Effect.Effect<ReadonlyArray<unknown>, E, R>) =>
  Effect.map(
    priceRows.all(statement),
    (stored) =>
      new PriceList(
        stored.map(({ cache_write, cached_input, input, model, output }) => [
          model,
          { input, output, cachedInput: cached_input, cacheWrite: cache_write }
        ])
      )
  )

const layersForOwners = (sql: SqlClient.SqlClient, owners: ReadonlyArray<OwnerScope>) =>
  Effect.map(
    sql<RowColumns>`SELECT ${sql.literal(StoredLayers.columns)} FROM policy_layers WHERE enabled AND ${sql.or([
      sql`layer_kind = 'global'`,
      sql`(layer_kind = 'project' AND scope_id = ANY(${idsOf(owners, ({ projectId }) => projectId)}::text[]))`,
      sql`(layer_kind = 'team' AND scope_id = ANY(${idsOf(owners, ({ teamId }) => teamId)}::text[]))`,
      sql`layer_kind <> ALL(${LayerKind.literals}::text[])`
    ])}`,
    (stored) => indexLayers(new RowReader().read(StoredLayers.table, stored))
  )

const idsOf = (owners: ReadonlyArray<OwnerScope>, idOf: (owner: OwnerScope) => string | undefined) => [
  ...new Set(owners.map(idOf).filter((id) => id !== undefined))
]

const keyRows = storedRows(Schema.Struct(StoredKeys.fields), { table: "api_keys", key: ["id"] })

const priceRows = storedRows(
  Schema.Struct({
    model: Schema.String,
    input: Schema.FiniteFromString,
    output: Schema.FiniteFromString,
    cached_input: Schema.NullOr(Schema.FiniteFromString),
    cache_write: Schema.NullOr(Schema.FiniteFromString)
  }),
  { table: "model_prices", key: ["model"] }
)
