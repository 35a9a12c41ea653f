import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Fragment } from "effect/sql/Statement"
import { summands } from "../../state/UsageSums.ts"
import type { BreakdownQuery } from "../api/usage/UsageApi.ts"
import { computedRows } from "../store/Rows.ts"
import * as UsageGroups from "./UsageGroups.ts"
import { addendOf, defaultLimit } from "./UsageRanking.ts"
import * as UsageSql from "./UsageSql.ts"

/**
 * Sums of usage by task, of which a month may have 200,000. Most of them have a single row of sums, and an index has these
 * with what they are sorted by. The others are added up first: tasks that have several rows, or usage at the ends of the
 * range.
 */
export const make = (sql: SqlClient) => {
  const usageSql = UsageSql.make(sql)
  const groups = UsageGroups.make(sql)
  const union = sql.join(" UNION ALL ", false)
  const summandNames = sql.literal(summands.join(", "))

  const oneOfSeveral = sql.literal("NOT only_row")
  const single = sql.literal("only_row")
  /** An older version writes rows that do not say whether they are the only one. */
  const unmarked = sql.literal("only_row IS NULL")

  /** `others` are the rows of tasks that are not those of whole days, or that an older version wrote. */
  const statement = (
    { breakdown_limit = defaultLimit, breakdown_offset = 0, sort_by = "requests", sort_order = "desc" }: BreakdownQuery,
    days: UsageGroups.ByDays["days"],
    others: Fragment
  ): Fragment => {
    const direction = sql.literal(sort_order === "asc" ? "ASC" : "DESC")
    const weighed = (rows: Fragment) => sql`
      SELECT name, request_count, ${sql.literal(addendOf(sort_by))} AS weight,
        ${sql.literal(addendOf("requests"))} AS requests
      FROM (${rows}) AS rows`
    const rank = sql.literal(sort_by === "latency" ? "weight / requests" : "weight")
    // the index is in the order of the column itself
    const rankOfSingle = sort_by === "requests" ? sql.literal("request_count") : rank
    return sql`
      WITH others AS MATERIALIZED (
        SELECT name, status_code, ${summandNames} FROM (${others}) AS matching
      ), added AS MATERIALIZED (
        SELECT DISTINCT name FROM others
      ), singles_of_added AS MATERIALIZED (
        SELECT found.* FROM added CROSS JOIN LATERAL (${weighed(days(sql`${single} AND name = added.name`))} OFFSET 0) AS found
      ), several AS (
        SELECT name, sum(weight) AS weight, sum(requests) AS requests FROM (
          ${weighed(sql`SELECT * FROM others`)}
          UNION ALL ${weighed(days(oneOfSeveral))}
          UNION ALL SELECT * FROM singles_of_added
        ) AS parts GROUP BY name
      ), singles AS (
        SELECT name, weight, requests FROM (
          SELECT * FROM (${weighed(days(single))}) AS days ORDER BY ${rankOfSingle} ${direction}, name
          LIMIT (SELECT ${breakdown_offset + breakdown_limit}::bigint + count(*) FROM singles_of_added)
        ) AS first WHERE name NOT IN (SELECT name FROM singles_of_added)
      ), page AS (
        SELECT name, row_number() OVER () AS place FROM (
          SELECT name FROM (SELECT * FROM several UNION ALL SELECT * FROM singles) AS tasks
          ORDER BY ${rank} ${direction}, name LIMIT ${breakdown_limit} OFFSET ${breakdown_offset}
        ) AS ordered
      )
      SELECT name, place, ${usageSql.sums} FROM (
        SELECT name, status_code, ${summandNames} FROM others
        UNION ALL SELECT name, status_code, ${summandNames}
          FROM (${days(sql`only_row IS NOT NULL AND name IN (SELECT name FROM page)`)}) AS days
      ) AS matching JOIN page USING (name) GROUP BY name, place ORDER BY place`
  }

  return {
    read: Effect.fnUntraced(function* (query: BreakdownQuery, range: UsageGroups.SummedRange) {
      const { days, others } = groups.byDays(query, range, "task", "tasks")
      // PostgreSQL expects many such rows where there are none, and would choose a plan for them.
      const [older] = yield* sql`SELECT 1 FROM (${days(unmarked)}) AS days LIMIT 1`.unprepared
      const rows = yield* taskRows.all(
        sql`${statement(query, days, older === undefined ? others : union([others, days(unmarked)]))}`.unprepared
      )
      return rows.map((row) => ({ name: row.name, display_name: row.name, summary: UsageSql.toSummary(row) }))
    })
  }
}

const taskRows = computedRows(Schema.Struct({ name: Schema.String, ...UsageSql.Sums.fields }))
