import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Fragment } from "effect/sql/Statement"
import { type Dimension as SummedDimension, summands } from "../../state/UsageSums.ts"
import { ControlError } from "../api/schema/Errors.ts"
import type { BreakdownQuery } from "../api/usage/UsageApi.ts"
import { Count, computedRows } from "../store/Rows.ts"
import * as UsageGroups from "./UsageGroups.ts"
import { defaultLimit, rankOf } from "./UsageRanking.ts"
import * as UsageSql from "./UsageSql.ts"
import * as UsageTasks from "./UsageTasks.ts"

export type Dimension = keyof typeof dimensionOf

/** Clients may choose these labels freely, so there are no sums for them. */
export type FreeLabel = keyof typeof freeLabels

/** Reading so many events takes a fraction of a second. */
const maxLabelled = 100_000

/** Sums of usage by the values of a dimension, sorted and paged. */
export const make = (sql: SqlClient) => {
  const usageSql = UsageSql.make(sql)
  const groups = UsageGroups.make(sql)
  const tasks = UsageTasks.make(sql)

  /** Returns the page of each dimension. `matching` has the columns dimension, name, status_code and the summands. */
  const pages = (matching: Fragment, { sort_by = "requests", sort_order = "desc", ...query }: BreakdownQuery) => {
    const { breakdown_limit = defaultLimit, breakdown_offset = 0 } = query
    const order = sql.literal(rankOf(sort_by, sort_order))
    return sql`
      SELECT dimension, name, ${sql.literal(displayName)} AS display_name, ${usageSql.sumNames}
      FROM (
        SELECT dimension, name, ${usageSql.sums},
          row_number() OVER (PARTITION BY dimension ORDER BY ${order}, name) AS place
        FROM (${matching}) AS matching GROUP BY dimension, name
      ) AS summed
      WHERE place > ${breakdown_offset} AND place <= ${breakdown_offset + breakdown_limit} ORDER BY dimension, place`
  }

  const readPages = (matching: Fragment, query: BreakdownQuery) =>
    Effect.map(groupRows.all(pages(matching, query).unprepared), (read) => read.map(toGroup))

  const countLabelled = (matching: Fragment) =>
    Effect.map(
      countRows.only(
        sql`SELECT count(*) AS count FROM (SELECT 1 FROM (${matching}) AS matching LIMIT ${maxLabelled + 1}) AS counted`
          .unprepared
      ),
      ({ count }) => count
    )

  return {
    pages,
    read: (by: Dimension, query: BreakdownQuery, range: UsageGroups.SummedRange) => {
      const dimension = dimensionOf[by]
      if (dimension === "task") return tasks.read(query, range)
      const others = groups.rest(query, range, rollupDetails[by])
      return readPages(groups.groupedBy([dimension], query, range, others), query)
    },
    /** `range` is divided by the sums by type. */
    readByTaskType: (query: BreakdownQuery, range: UsageGroups.SummedRange) => {
      const typed = groups.rows(query, range, "task_type", rollupDetails.tasks)
      return readPages(
        sql`SELECT 'task_type' AS dimension, name, status_code, ${sql.literal(summands.join(", "))}
          FROM (${typed}) AS typed`,
        query
      )
    },
    /**
     * The newest requests that a policy check refused, by their models. The names come from clients and may not exist
     * upstream.
     */
    readDenied: (check: string, query: BreakdownQuery) => {
      const denied = usageSql.matchingLabels({ ...query, denied_by: check }, "model")
      return readPages(sql`${denied} ORDER BY created_at DESC LIMIT ${maxLabelled}`, query)
    },
    readByLabel: Effect.fnUntraced(function* (by: FreeLabel, query: BreakdownQuery) {
      const matching = usageSql.matchingLabels(query, freeLabels[by])
      if ((yield* countLabelled(matching)) > maxLabelled) return yield* tooManyLabelled
      return yield* readPages(matching, query)
    })
  }
}

const dimensionOf = {
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
} as const satisfies Readonly<Record<string, SummedDimension>>

const freeLabels = { sessions: "session_id", endUsers: "end_user" } as const

/** SQL: the name that people gave a group of `summed`. Deleted projects and keys are shown by their ids. */
export const displayNames = {
  project: `CASE WHEN summed.name = 'individual' THEN summed.name ELSE
    coalesce((SELECT projects.name FROM projects WHERE projects.id = summed.name::uuid), summed.name) END`,
  key: `coalesce((SELECT coalesce(api_keys.name, api_keys.key_prefix) FROM api_keys
    WHERE api_keys.id = summed.name::uuid), summed.name)`
} as const

const displayName = `CASE dimension WHEN 'project' THEN ${displayNames.project} WHEN 'key' THEN ${displayNames.key} ELSE summed.name END`

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
export const commonBreakdowns = ["project", "key", "team", "service", "endpoint", "provider", "model"] as const

/** The columns of a group. `name` is the value to filter by. */
export const groupFields = { name: Schema.String, display_name: Schema.String, ...UsageSql.Sums.fields }

export const groupRows = computedRows(Schema.Struct({ dimension: Schema.String, ...groupFields }))
const countRows = computedRows(Schema.Struct({ count: Count }))

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
