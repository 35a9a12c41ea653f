import { Clock, DateTime, Effect, Function, Schema } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Fragment } from "effect/sql/Statement"
import { intersection, type KeyPolicy } from "../../policy/KeyPolicy.ts"
import { unusedCutoff } from "../../policy/KeyState.ts"
import type { Limit } from "../../policy/Limit.ts"
import { ownerLayers, type PolicyLayers } from "../../policy/PolicyLayer.ts"
import { toDollars } from "../../policy/Price.ts"
import type { Database } from "../../services/Database.ts"
import type { Key, KeySort, KeyStateName, KeysQuery, ListedKey } from "../api/keys/KeysApi.ts"
import type { SortOrder } from "../api/schema/Fields.ts"
import * as PolicyState from "../policies/PolicyState.ts"
import { computedRows, storedRows, toStoreFailures } from "../store/Rows.ts"
import { readSortedPage, type SortColumn } from "../store/SortedPages.ts"
import { columnsOf, KeyRow, table, toKey } from "./KeyRows.ts"

interface Sort {
  readonly columns: readonly [SortColumn, ...ReadonlyArray<SortColumn>]
  readonly usualOrder: SortOrder
}

/** Each sort key has an index in `migrations/0023_finding_keys.ts` or `0036_due_rotations.ts`. */
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
  rotation_due_at: {
    columns: [
      ["coalesce(api_keys.rotation_due_at, 'infinity')", "timestamptz"],
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

/** SQL: each state of a key as a condition of its row. */
export const stateConditions: Readonly<Record<KeyStateName, string>> = {
  active: "revoked_at IS NULL AND NOT disabled AND coalesce(expires_at, 'infinity') > now()",
  disabled: "revoked_at IS NULL AND disabled",
  expired: "revoked_at IS NULL AND NOT disabled AND coalesce(expires_at, 'infinity') <= now()",
  revoked: "revoked_at IS NOT NULL"
}

const defaultLimit = 100
const mostFew = 2_000

export const make = ({ sql, transaction }: Database["Service"]) => {
  const columns = sql`${columnsOf(sql)}, (SELECT name FROM projects WHERE projects.id = project_id) AS project_name,
    CASE WHEN month >= (date_trunc('month', now(), 'UTC') AT TIME ZONE 'UTC')::date THEN cost_nanos ELSE 0 END AS spend_nanos,
    (SELECT nullif(until, 'epoch') FROM usage_rolled) AS spend_until`
  const policies = PolicyState.make(sql)

  const toListedKeys = Effect.fnUntraced(function* (rows: ReadonlyArray<typeof ListedRow.Type>) {
    const layers = yield* policies.layersForOwners(rows.map(ownerOf))
    const now = yield* Clock.currentTimeMillis
    return rows.map((row) => toListedKey(row, layers, now))
  })

  /**
   * PostgreSQL walks a list in its order until it has a page of matches. If few keys match, that reads all keys, so few
   * are found first, by the index of words: PostgreSQL expects many matches of the beginning of a word.
   */
  const search = Effect.fnUntraced(function* (q: string) {
    const matches = sql`words @@ search_query(${q})`
    const found = yield* transaction(
      Effect.andThen(
        sql`SET LOCAL enable_seqscan = off`,
        idRows.all(sql`SELECT id FROM api_keys WHERE ${matches} LIMIT ${mostFew + 1}`.unprepared)
      )
    )
    return found.length > mostFew ? matches : sql`id = ANY(${found.map(({ id }) => id)}::uuid[])`
  })

  /** The conditions of the keys that match a query. */
  const matching = Effect.fnUntraced(function* (query: Omit<KeysQuery, "limit" | "cursor">) {
    const searched = query.q === undefined ? [] : [yield* search(query.q)]
    return [...searched, ...filters(sql, query)]
  })

  const list = Effect.fn("Keys.list")(function* ({ cursor, limit = defaultLimit, ...query }: KeysQuery) {
    const { columns: sortColumns, usualOrder } = sorts[query.sort_by ?? "created_at"]
    const order = query.sort_order ?? usualOrder
    const conditions = yield* matching(query)
    const page = yield* readSortedPage(
      sql,
      { columns: sortColumns, order, query, cursor, limit },
      listedRows,
      ({ afterCursor, orderAndLimit, sortKey }) => sql`
        SELECT ${columns}, ${sortKey} FROM api_keys JOIN key_spend ON key_id = id
        WHERE ${sql.and([afterCursor, ...conditions])} ${orderAndLimit}`,
      Function.identity
    )
    return { ...page, rows: yield* toListedKeys(page.rows) }
  }, toStoreFailures)

  const get = Effect.fn("Keys.get")(function* (id: string) {
    const rows = yield* listedRows.all(sql`
      SELECT ${columns} FROM api_keys JOIN key_spend ON key_id = id WHERE id = ${id}`)
    const [key] = yield* toListedKeys(rows)
    return key
  }, toStoreFailures)

  return { list, get, matching }
}

const filters = (
  sql: SqlClient,
  { key_prefix, project_id, state, tag, team_id }: KeysQuery
): ReadonlyArray<Fragment> => [
  ...(project_id === undefined ? [] : [sql`project_id = ${project_id}`]),
  ...(team_id === undefined ? [] : [sql`team_id = ${team_id}`]),
  ...(key_prefix === undefined ? [] : [sql`key_prefix = ${key_prefix}`]),
  ...(tag === undefined ? [] : [sql`tags @> ARRAY[${tag}]::text[]`]),
  ...(state === undefined ? [] : [sql.literal(stateConditions[state])])
]

const ListedRow = KeyRow.pipe(
  Schema.fieldsAssign({
    spend_nanos: Schema.NumberFromString,
    spend_until: Schema.NullOr(Schema.DateTimeUtcFromDate),
    project_name: Schema.NullOr(Schema.String)
  })
)
const listedRows = storedRows(ListedRow, table)
const idRows = computedRows(Schema.Struct({ id: Schema.String }))

const ownerOf = ({ project_id, team_id }: Pick<typeof ListedRow.Type, "project_id" | "team_id">) => ({
  projectId: project_id ?? undefined,
  teamId: team_id ?? undefined
})

const toListedKey = (
  { spend_nanos, spend_until, project_name, ...row }: typeof ListedRow.Type,
  layers: PolicyLayers,
  now: number
): ListedKey => {
  const key = toKey(row)
  const policy = ownerLayers(layers, ownerOf(row))
    .flatMap((layer) => layer?.policy ?? [])
    .reduce(intersection, key.policy)
  const { monthly_budget_usd: budget } = policy
  return {
    ...key,
    ...stateOf(key, policy, now),
    project_name,
    spend_this_month_usd: toDollars(spend_nanos),
    spend_until,
    monthly_budget_usd: budget._tag === "Limited" ? budget.max : null
  }
}

const stateOf = (
  key: Key,
  { unused_key_auto_disable_after_days: unusedDays }: KeyPolicy,
  now: number
): Pick<ListedKey, "state" | "state_reason"> => {
  if (key.revoked_at !== null) {
    return { state: "revoked", state_reason: "An operator revoked it. A revoked key stays revoked." }
  }
  if (key.disabled) return { state: "disabled", state_reason: disabledReason(key, unusedDays, now) }
  if (key.expires_at !== null && DateTime.toEpochMillis(key.expires_at) <= now)
    return { state: "expired", state_reason: "It has expired. A later expires_at makes it usable again." }
  return { state: "active", state_reason: null }
}

/** The row does not say who disabled a key: an operator, or the gateway because nobody had used it. */
const disabledReason = ({ created_at, last_used_at }: Key, unusedDays: Limit, now: number): string => {
  const used = DateTime.toEpochMillis(last_used_at ?? created_at)
  return unusedDays._tag === "Limited" && used <= unusedCutoff(unusedDays.max, now)
    ? `It was not used for ${unusedDays.max} days, after which its policy disables it. An operator can enable it.`
    : "An operator disabled it, and can enable it."
}
