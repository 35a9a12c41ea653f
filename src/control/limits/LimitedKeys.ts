import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import type { Fragment } from "effect/sql/Statement"
import { indexLayers, type LayerKind, type PolicyLayers } from "../../policy/PolicyLayer.ts"
import { limitFields } from "../../policy/SharedLimits.ts"
import * as StoredKeys from "../../state/StoredKeys.ts"
import * as StoredLayers from "../../state/StoredLayers.ts"
import { type RowColumns, RowReader } from "../../state/StoredRows.ts"
import type { SortedCursor } from "../api/schema/Fields.ts"
import { storedRows } from "../store/Rows.ts"
import { readSortedPage } from "../store/SortedPages.ts"

/** A key with the name that people know it by. */
export interface NamedKey {
  readonly key: StoredKeys.StoredKey
  readonly name: string
  readonly lastUsedAt: Date | null
}

/** Reading this many keys, their policies and their counters takes a fraction of a second. */
export const keysPerPage = 500

/** The most layers with shared limits that are read. */
const maxSharingLayers = 1000

/** Reads keys and policy layers that have limits. */
export const make = (sql: SqlClient.SqlClient) => {
  const columns = sql.literal(`${StoredKeys.columns}, coalesce(k.name, k.key_prefix) AS shown_name, k.last_used_at`)
  const layersWhere = (condition: Fragment, limit: number = maxSharingLayers) =>
    Effect.map(
      sql<RowColumns>`SELECT ${sql.literal(StoredLayers.columns)} FROM policy_layers WHERE enabled AND ${condition} LIMIT ${limit}`,
      (stored) => new RowReader().read(StoredLayers.table, stored)
    )

  return {
    find: (id: string) =>
      Effect.map(
        keyRows.first(sql`SELECT ${columns} FROM api_keys k WHERE k.id = ${id}`),
        (row) => row && toNamedKey(row)
      ),

    findAll: (ids: ReadonlyArray<string>) =>
      Effect.map(keyRows.all(sql`SELECT ${columns} FROM api_keys k WHERE k.id = ANY(${ids}::uuid[])`), (rows) =>
        rows.map(toNamedKey)
      ),

    /** Returns usable keys that were used since `since`, the latest used first. */
    page: (
      filter: { readonly project_id?: string; readonly team_id?: string },
      since: Date,
      cursor: SortedCursor | undefined
    ) =>
      readSortedPage(
        sql,
        {
          columns: [
            ["coalesce(k.last_used_at, '-infinity')", "timestamptz"],
            ["k.id", "uuid"]
          ],
          order: "desc",
          query: filter,
          cursor,
          limit: keysPerPage
        },
        keyRows,
        ({ afterCursor, orderAndLimit, sortKey }) => sql`
          SELECT ${columns}, ${sortKey} FROM api_keys k
          WHERE ${sql.and([
            sql`coalesce(k.last_used_at, '-infinity') >= ${since}`,
            sql`k.revoked_at IS NULL AND NOT k.disabled AND coalesce(k.expires_at, 'infinity') > now()`,
            ...(filter.project_id === undefined ? [] : [sql`k.project_id = ${filter.project_id}`]),
            ...(filter.team_id === undefined ? [] : [sql`k.team_id = ${filter.team_id}`]),
            afterCursor
          ])} ${orderAndLimit}`,
        toNamedKey
      ),

    layer: (id: string) => Effect.map(layersWhere(sql`id = ${id}`), ([layer]) => layer),

    /** `scopeId` is `null` for the global layer. */
    layerOf: (kind: LayerKind, scopeId: string | null) =>
      layersWhere(sql`layer_kind = ${kind} AND coalesce(scope_id, '') = ${scopeId ?? ""}`),

    sharingLayers: layersWhere(sql`jsonb_path_exists(shared, '$.* ? (@ != null)')`),

    /** Returns the layers of routes and models that limit keys or share limits. */
    narrowingLayers: Effect.map(
      layersWhere(sql`layer_kind IN ('route', 'model')
        AND (policy ?| ${limitFields}::text[] OR jsonb_path_exists(shared, '$.* ? (@ != null)'))`),
      indexLayers
    )
  }
}

/** Adds layers of routes and models to those of owners. */
export const withNarrowing = (owners: PolicyLayers, narrowing: PolicyLayers): PolicyLayers => ({
  ...owners,
  empty: owners.empty && narrowing.empty,
  of: { ...owners.of, route: narrowing.of.route, model: narrowing.of.model }
})

const keyRows = storedRows(
  Schema.Struct({ ...StoredKeys.fields, shown_name: Schema.String, last_used_at: Schema.NullOr(Schema.Date) }),
  { table: "api_keys", key: ["id"] }
)

const toNamedKey = ({
  last_used_at,
  shown_name,
  ...row
}: Parameters<typeof StoredKeys.keyOf>[0] & {
  readonly shown_name: string
  readonly last_used_at: Date | null
}): NamedKey => ({ key: StoredKeys.keyOf(row), name: shown_name, lastUsedAt: last_used_at })
