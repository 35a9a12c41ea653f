import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Fragment } from "effect/sql/Statement"
import type * as UsageSums from "../../state/UsageSums.ts"
import { ControlError } from "../api/schema/Errors.ts"
import type { SortOrder } from "../api/schema/Fields.ts"
import type { BreakdownQuery, BreakdownSort } from "../api/usage/UsageApi.ts"
import { Count, computedRows } from "../store/Rows.ts"
import * as UsageGroups from "./UsageGroups.ts"
import * as UsageSql from "./UsageSql.ts"

export type Dimension = keyof typeof dimensionOf

/** Clients may choose these labels freely, so there are no sums for them. */
export type FreeLabel = keyof typeof freeLabels

const defaultLimit = 20

/** Reading so many events takes a fraction of a second. */
const maxLabelled = 100_000

/** Sums of usage by the values of one dimension, sorted and paged. */
export const make = (sql: SqlClient) => {
  const usageSql = UsageSql.make(sql)
  const groups = UsageGroups.make(sql)

  /** `matching` has the columns name, status_code and the summands. */
  const statement = (by: Dimension | FreeLabel, matching: Fragment, query: BreakdownQuery) => {
    const { breakdown_limit = defaultLimit, breakdown_offset = 0 } = query
    const order = orderExpression(query.sort_by ?? "requests", query.sort_order ?? "desc")
    // There may be 200,000 tasks. One aggregate selects the page. Other sums are computed only for rows of the page.
    return sql`
      WITH matching AS NOT MATERIALIZED (${matching}),
      page AS (SELECT name, ${sql.literal(order)} AS place FROM matching
        GROUP BY 1 ORDER BY 2, 1 LIMIT ${breakdown_limit} OFFSET ${breakdown_offset})
      SELECT ${by} AS dimension, summed.*, ${sql.literal(displayNames[by] ?? "summed.name")} AS display_name
      FROM (SELECT name, ${usageSql.sums}, place FROM matching JOIN page USING (name) GROUP BY name, place) AS summed
      ORDER BY place, summed.name`
  }

  /**
   * There may be 200,000 tasks. Those of whole days are counted in the order of an index, and joined with the few others.
   * Only the tasks of the page are then summed up.
   */
  const readTasks = Effect.fnUntraced(function* (query: BreakdownQuery, range: UsageGroups.SummedRange) {
    const matching = groups.rows(query, range, "task", "tasks")
    if (range.narrow.day.length === 0) {
      return yield* readStatement("tasks", matching, query)
    }
    const { breakdown_limit = defaultLimit, breakdown_offset = 0, sort_by = "requests" } = query
    const { days, others } = groups.byDays(query, range, "task", "tasks")
    const weights = (rows: Fragment) => sql`SELECT name, ${sql.literal(weightExpressions[sort_by])} AS weight,
      ${sql.literal(sortExpressions.requests)} AS requests FROM (${rows}) AS matching GROUP BY name`
    const weight = "coalesce(days.weight, 0) + coalesce(others.weight, 0)"
    const requests = "coalesce(days.requests, 0) + coalesce(others.requests, 0)"
    const place = sort_by === "latency" ? `(${weight}) / (${requests})` : weight
    const names = yield* textRows.all(
      sql`SELECT name AS value FROM (${weights(days)}) AS days FULL JOIN (${weights(others)}) AS others USING (name)
        ORDER BY ${sql.literal(query.sort_order === "asc" ? place : `-(${place})`)}, name
        LIMIT ${breakdown_limit} OFFSET ${breakdown_offset}`.unprepared
    )
    if (names.length === 0) return []
    const page = names.map(({ value }) => value)
    const read = yield* groupRows.all(
      sql`SELECT 'tasks' AS dimension, name, name AS display_name, ${usageSql.sums} FROM (${matching}) AS matching
        WHERE ${sql.in("name", page)} GROUP BY name`.unprepared
    )
    return page.flatMap((name) => read.filter((row) => row.name === name)).map(toGroup)
  })

  const countLabelled = (matching: Fragment) =>
    Effect.map(
      countRows.only(
        sql`SELECT count(*) AS count FROM (SELECT 1 FROM (${matching}) AS matching LIMIT ${maxLabelled + 1}) AS counted`
          .unprepared
      ),
      ({ count }) => count
    )

  const readStatement = (by: Dimension | FreeLabel, matching: Fragment, query: BreakdownQuery) =>
    Effect.map(groupRows.all(statement(by, matching, query).unprepared), (read) => read.map(toGroup))

  return {
    statement,
    readTasks,
    read: (by: Dimension, query: BreakdownQuery, range: UsageGroups.SummedRange) =>
      by === "tasks"
        ? readTasks(query, range)
        : readStatement(by, groups.rows(query, range, dimensionOf[by], rollupDetails[by]), query),
    readByLabel: Effect.fnUntraced(function* (by: FreeLabel, query: BreakdownQuery) {
      const matching = usageSql.matchingLabels(query, freeLabels[by])
      if ((yield* countLabelled(matching)) > maxLabelled) return yield* tooManyLabelled
      return yield* readStatement(by, matching, query)
    })
  }
}

export const dimensionOf = {
  projects: "project",
  keys: "key",
  teams: "team",
  services: "service",
  endpoints: "endpoint",
  providers: "provider",
  models: "model",
  tasks: "task",
  clients: "client",
  subjects: "subject"
} as const satisfies Readonly<Record<string, UsageSums.Dimension>>

const freeLabels = { sessions: "session_id", endUsers: "end_user" } as const

/** Deleted projects and keys are shown by their ids. */
export const displayNames: Partial<Record<Dimension | FreeLabel, string>> = {
  projects: `CASE WHEN summed.name = 'individual' THEN summed.name ELSE
    coalesce((SELECT projects.name FROM projects WHERE projects.id = summed.name::uuid), summed.name) END`,
  keys: `coalesce((SELECT coalesce(api_keys.name, api_keys.key_prefix) FROM api_keys
    WHERE api_keys.id = summed.name::uuid), summed.name)`
}

const rollupDetails: Readonly<Record<Dimension, UsageSql.RollupDetail>> = {
  projects: "keys",
  keys: "keys",
  teams: "keys",
  services: "overview",
  endpoints: "keys",
  providers: "overview",
  models: "keys",
  tasks: "tasks",
  clients: "keys",
  subjects: "keys"
}

/** The dashboard computes these breakdowns from one result. Tasks need other rows of the rollups. */
export const commonBreakdowns = ["projects", "keys", "teams", "services", "endpoints", "providers", "models"] as const

/** Sums of `bigint` take PostgreSQL twice as long in 200,000 groups. Those of doubles are exact up to 2^53. */
const sortExpressions: Readonly<Record<BreakdownSort, string>> = {
  requests: "sum(request_count::double precision)",
  cost: "sum(cost_nanos::double precision)",
  failures: "coalesce(sum(request_count::double precision) FILTER (WHERE status_code >= 400), 0)",
  success: "coalesce(sum(request_count::double precision) FILTER (WHERE status_code < 400), 0)",
  latency: "sum(total_latency_ms::double precision) / sum(request_count::double precision)",
  tokens: "sum(total_tokens::double precision)",
  fallbacks: "sum(fallback_count::double precision)"
}

const weightExpressions: Readonly<Record<BreakdownSort, string>> = {
  ...sortExpressions,
  latency: "sum(total_latency_ms::double precision)"
}

/** Sorting by this expression in ascending order yields the requested order. */
const orderExpression = (by: BreakdownSort, order: SortOrder): string =>
  order === "asc" ? sortExpressions[by] : `-(${sortExpressions[by]})`

/** The columns of a group. `name` is the value to filter by. */
export const groupFields = { name: Schema.String, display_name: Schema.String, ...UsageSql.Sums.fields }

export const groupRows = computedRows(Schema.Struct({ dimension: Schema.String, ...groupFields }))
const countRows = computedRows(Schema.Struct({ count: Count }))
const textRows = computedRows(Schema.Struct({ value: Schema.String }))

export const toGroup = (row: { readonly name: string; readonly display_name: string } & UsageSql.Sums) => ({
  name: row.name,
  display_name: row.display_name,
  summary: UsageSql.toSummary(row)
})

const tooManyLabelled = new ControlError(
  "invalid_usage_query",
  `More than ${maxLabelled} requests match; narrow the time range with from and to, or filter by key_id or project_id.`,
  { param: "from" }
)
