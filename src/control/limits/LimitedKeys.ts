import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import type { Fragment } from "effect/sql/Statement"
import { indexLayers, type LayerKind, type PolicyLayer, type PolicyLayers } from "../../policy/PolicyLayer.ts"
import { limitFields } from "../../policy/SharedLimits.ts"
import * as StoredKeys from "../../state/StoredKeys.ts"
import * as StoredLayers from "../../state/StoredLayers.ts"
import { type RowColumns, RowReader } from "../../state/StoredRows.ts"
import type { SortedCursor } from "../api/schema/Fields.ts"
import { computedRows, storedRows } from "../store/Rows.ts"
import { readSortedPage } from "../store/SortedPages.ts"

/** Whom people ask about a key or a layer. */
export interface Owners {
  /** That of the key, else that of its project. */
  readonly owner_email: string | null
  readonly project_name: string | null
  readonly team_id: string | null
}

/** A key with the name that people know it by. */
export interface NamedKey {
  readonly key: StoredKeys.StoredKey
  readonly name: string
  readonly owners: Owners
  readonly lastUsedAt: Date | null
}

/** Reading this many keys, their policies and their counters takes a fraction of a second. */
export const keysPerPage = 500

/** The most layers with shared limits that are read. */
const maxSharingLayers = 1000

/** Reads keys and policy layers that have limits. */
export const make = (sql: SqlClient.SqlClient) => {
  const columns = sql.literal(`${StoredKeys.columns}, coalesce(k.name, k.key_prefix) AS shown_name, k.last_used_at,
    coalesce(k.owner_email, (SELECT owner_email FROM projects WHERE projects.id = k.project_id)) AS owner_email,
    (SELECT name FROM projects WHERE projects.id = k.project_id) AS project_name`)
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

    layerIdOf: (kind: LayerKind, scopeId: string | null) =>
      Effect.map(
        idRows.first(
          sql`SELECT id::text AS id FROM policy_layers WHERE layer_kind = ${kind} AND coalesce(scope_id, '') = ${scopeId ?? ""}`
        ),
        (row) => row?.id
      ),

    sharingLayers: layersWhere(sql`jsonb_path_exists(shared, '$.* ? (@ != null)')`),

    /** Returns the owners of layers, by the scope of the layer. Layers of routes and models, and the global one, have none. */
    ownersOf: (layers: ReadonlyArray<PolicyLayer>) => {
      const ids = layers.flatMap(({ kind, scopeId }) => (kind === "project" && scopeId !== null ? [scopeId] : []))
      const projects =
        ids.length === 0
          ? Effect.succeed([])
          : projectRows.all(sql`SELECT id::text AS id, name, owner_email FROM projects WHERE id::text = ANY(${ids})`)
      return Effect.map(projects, (found) => {
        const byId = new Map(found.map((project) => [project.id, project]))
        return ({ kind, scopeId }: Pick<PolicyLayer, "kind" | "scopeId">): Owners => {
          const project = kind === "project" ? byId.get(scopeId ?? "") : undefined
          return {
            owner_email: project?.owner_email ?? null,
            project_name: project?.name ?? null,
            team_id: kind === "team" ? scopeId : null
          }
        }
      })
    },

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
  Schema.Struct({
    ...StoredKeys.fields,
    shown_name: Schema.String,
    last_used_at: Schema.NullOr(Schema.Date),
    owner_email: Schema.NullOr(Schema.String),
    project_name: Schema.NullOr(Schema.String)
  }),
  { table: "api_keys", key: ["id"] }
)

const idRows = computedRows(Schema.Struct({ id: Schema.String }))
const projectRows = computedRows(
  Schema.Struct({ id: Schema.String, name: Schema.String, owner_email: Schema.NullOr(Schema.String) })
)

const toNamedKey = ({
  last_used_at,
  owner_email,
  project_name,
  shown_name,
  ...row
}: Parameters<typeof StoredKeys.keyOf>[0] &
  Pick<Owners, "owner_email" | "project_name"> & {
    readonly shown_name: string
    readonly last_used_at: Date | null
  }): NamedKey => ({
  key: StoredKeys.keyOf(row),
  name: shown_name,
  owners: { owner_email, project_name, team_id: row.team_id },
  lastUsedAt: last_used_at
})
