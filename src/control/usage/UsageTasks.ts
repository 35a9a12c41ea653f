import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Fragment } from "effect/sql/Statement"
import type { BreakdownQuery, BreakdownSort } from "../api/usage/UsageApi.ts"
import { computedRows } from "../store/Rows.ts"
import * as UsageGroups from "./UsageGroups.ts"
import * as UsageSql from "./UsageSql.ts"

/**
 * Sums of usage by task, of which a month may have 200,000. Most of them have a single row of sums, which an index orders,
 * so only those of the page are read. The others are added up first: tasks that have several rows, or usage at the ends of
 * the range.
 */
export const make = (sql: SqlClient) => {
  const usageSql = UsageSql.make(sql)
  const groups = UsageGroups.make(sql)

  /** An older version writes rows that do not say whether they are the only one. */
  const unmarked = sql.literal("only_row IS NOT TRUE AND only_row IS NULL")
  const oneOfSeveral = sql.literal("only_row IS NOT TRUE AND only_row = false")
  const single = sql.literal("only_row")

  const pageOfNames = (
    { breakdown_limit = defaultLimit, breakdown_offset = 0, sort_by = "requests", sort_order = "desc" }: BreakdownQuery,
    { days, others }: UsageGroups.ByDays
  ): Fragment => {
    const direction = sql.literal(sort_order === "asc" ? "ASC" : "DESC")
    const sums = (rows: Fragment) => sql`
      SELECT name, sum((${sql.literal(weightOf[sort_by])})::double precision) AS weight,
        sum(request_count::double precision) AS requests
      FROM (${rows}) AS matching GROUP BY name`
    return sql`
      WITH others AS MATERIALIZED (${sums(others)}),
      added AS MATERIALIZED (SELECT name FROM others UNION SELECT name FROM (${days(unmarked)}) AS days),
      several AS (
        SELECT name, sum(weight) AS weight, sum(requests) AS requests FROM (
          SELECT * FROM others
          UNION ALL ${sums(days(unmarked))}
          UNION ALL ${sums(days(oneOfSeveral))}
          UNION ALL ${sums(days(sql`${single} AND name IN (SELECT name FROM added)`))}
        ) AS parts GROUP BY name
      ), singles AS (
        SELECT name, (${sql.literal(weightOf[sort_by])})::double precision, request_count::double precision
        FROM (${days(sql`${single} AND name NOT IN (SELECT name FROM added)`)}) AS days
        ORDER BY ${sql.literal(sort_by === "latency" ? averageLatency : weightOf[sort_by])} ${direction}, name
        LIMIT ${breakdown_offset + breakdown_limit}
      )
      SELECT name AS value FROM (SELECT * FROM several UNION ALL SELECT * FROM singles) AS tasks
      ORDER BY ${sql.literal(sort_by === "latency" ? "weight / requests" : "weight")} ${direction}, name
      LIMIT ${breakdown_limit} OFFSET ${breakdown_offset}`
  }

  return {
    read: Effect.fnUntraced(function* (query: BreakdownQuery, range: UsageGroups.SummedRange) {
      const parts = groups.byDays(query, range, "task", "tasks")
      const names = yield* textRows.all(sql`${pageOfNames(query, parts)}`.unprepared)
      if (names.length === 0) return []
      const page = names.map(({ value }) => value)
      const inPage = sql.in("name", page)
      const rows = yield* sumRows.all(
        sql`SELECT name, ${usageSql.sums} FROM (
            ${parts.days(inPage)} UNION ALL SELECT * FROM (${parts.others}) AS others WHERE ${inPage}
          ) AS matching GROUP BY name`.unprepared
      )
      return page
        .flatMap((name) => rows.filter((row) => row.name === name))
        .map((row) => ({ name: row.name, display_name: row.name, summary: UsageSql.toSummary(row) }))
    })
  }
}

const defaultLimit = 20

/** SQL: what a row of sums adds to the weight of a task. */
const weightOf: Readonly<Record<BreakdownSort, string>> = {
  requests: "request_count",
  cost: "cost_nanos",
  failures: "CASE WHEN status_code >= 400 THEN request_count ELSE 0 END",
  success: "CASE WHEN status_code < 400 THEN request_count ELSE 0 END",
  latency: "total_latency_ms",
  tokens: "total_tokens",
  fallbacks: "fallback_count"
}

const averageLatency = "total_latency_ms::double precision / request_count"

const textRows = computedRows(Schema.Struct({ value: Schema.String }))
const sumRows = computedRows(Schema.Struct({ name: Schema.String, ...UsageSql.Sums.fields }))
