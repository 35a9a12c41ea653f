import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Fragment } from "effect/sql/Statement"
import { toDollars } from "../../policy/Price.ts"
import type { KeySort, KeyStateName, KeysQuery, ListedKey } from "../api/keys/KeysApi.ts"
import type { SortOrder } from "../api/schema/Fields.ts"
import { storedRows, toStoreFailures } from "../store/Rows.ts"
import { readSortedPage, type SortColumn } from "../store/SortedPages.ts"
import { columnsOf, KeyRow, table, toKey } from "./KeyRows.ts"

interface Sort {
  readonly columns: readonly [SortColumn, ...ReadonlyArray<SortColumn>]
  readonly usualOrder: SortOrder
}

/** Each sort key has an index in `migrations/0023_finding_keys.ts`. */
const sorts: Readonly<Record<KeySort, Sort>> = {
  created_at: {
    columns: [
      ["api_keys.created_at", "timestamptz"],
      ["api_keys.id", "uuid"]
    ],
    usualOrder: "desc"
  },
  last_used_at: {
    columns: [
      ["coalesce(api_keys.last_used_at, '-infinity')", "timestamptz"],
      ["api_keys.id", "uuid"]
    ],
    usualOrder: "desc"
  },
  expires_at: {
    columns: [
      ["coalesce(api_keys.expires_at, 'infinity')", "timestamptz"],
      ["api_keys.id", "uuid"]
    ],
    usualOrder: "asc"
  },
  // Keys that cost something this month come first, then those of the months before.
  spend: {
    columns: [
      ["key_spend.month", "date"],
      ["key_spend.cost_nanos", "numeric"],
      ["key_spend.key_id", "uuid"]
    ],
    usualOrder: "desc"
  }
}

const stateConditions: Readonly<Record<KeyStateName, string>> = {
  active: "revoked_at IS NULL AND NOT disabled AND coalesce(expires_at, 'infinity') > now()",
  disabled: "revoked_at IS NULL AND disabled",
  expired: "revoked_at IS NULL AND NOT disabled AND coalesce(expires_at, 'infinity') <= now()",
  revoked: "revoked_at IS NOT NULL"
}

const defaultLimit = 100

export const make = (sql: SqlClient) => {
  const columns = columnsOf(sql)

  return Effect.fn("Keys.list")(function* ({ cursor, limit = defaultLimit, ...query }: KeysQuery) {
    const { columns: sortColumns, usualOrder } = sorts[query.sort_by ?? "created_at"]
    const order = query.sort_order ?? usualOrder
    return yield* readSortedPage(
      sql,
      { columns: sortColumns, order, query, cursor, limit },
      listedRows,
      ({ afterCursor, orderAndLimit, sortKey }) => sql`
        SELECT ${columns}, ${sortKey}, CASE WHEN month >= (date_trunc('month', now(), 'UTC') AT TIME ZONE 'UTC')::date THEN cost_nanos
          ELSE 0 END AS spend_nanos
        FROM api_keys JOIN key_spend ON key_id = id
        WHERE ${sql.and([afterCursor, ...filters(sql, query)])} ${orderAndLimit}`,
      toListedKey
    )
  }, toStoreFailures)
}

const filters = (
  sql: SqlClient,
  { key_prefix, project_id, q, state, tag, team_id }: KeysQuery
): ReadonlyArray<Fragment> => [
  ...(q === undefined ? [] : [sql`words @@ search_query(${q})`]),
  ...(project_id === undefined ? [] : [sql`project_id = ${project_id}`]),
  ...(team_id === undefined ? [] : [sql`team_id = ${team_id}`]),
  ...(key_prefix === undefined ? [] : [sql`key_prefix = ${key_prefix}`]),
  ...(tag === undefined ? [] : [sql`tags @> ARRAY[${tag}]::text[]`]),
  ...(state === undefined ? [] : [sql.literal(stateConditions[state])])
]

const ListedRow = KeyRow.pipe(Schema.fieldsAssign({ spend_nanos: Schema.NumberFromString }))
const listedRows = storedRows(ListedRow, table)

const toListedKey = ({ spend_nanos, ...row }: typeof ListedRow.Type): ListedKey => ({
  ...toKey(row),
  spend_this_month_usd: toDollars(spend_nanos)
})
