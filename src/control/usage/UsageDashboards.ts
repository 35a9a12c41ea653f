import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Fragment } from "effect/sql/Statement"
import type { DashboardQuery } from "../api/usage/UsageApi.ts"
import { computedRows } from "../store/Rows.ts"
import * as UsageBreakdowns from "./UsageBreakdowns.ts"
import { commonBreakdowns, groupFields, toGroup } from "./UsageBreakdowns.ts"
import * as UsageGroups from "./UsageGroups.ts"
import * as UsageSql from "./UsageSql.ts"

const defaultSeriesLimit = 744

interface Page {
  readonly limit: number
  readonly offset: number
}

/** A summary, breakdowns and series of the same requests. The breakdown by task is not among them. */
export const make = (sql: SqlClient) => {
  const usageSql = UsageSql.make(sql)
  const groups = UsageGroups.make(sql)
  const breakdowns = UsageBreakdowns.make(sql)
  const edges = [sql`SELECT * FROM edges`]
  const merged = sql`SELECT * FROM merged`

  /** Reads one bucket more than the limit, to find out whether there is a next page. */
  const series = (
    query: DashboardQuery,
    range: UsageGroups.SummedRange,
    kind: "series" | "service_series",
    { limit, offset }: Page
  ): Fragment => {
    const dimension = kind === "series" ? "all" : "service"
    const matching = groups.grouped(query, range, dimension, groups.rest(query, range, "overview", edges))
    return sql`
      SELECT ${sql.literal(`'${kind}'`)} AS dimension, name, '' AS display_name, ${usageSql.sums},
        date_trunc(${query.interval ?? "hour"}, at, 'UTC') AS bucket
      FROM (${matching}) AS matching ${kind === "series" ? sql`` : sql`WHERE name <> 'none'`}
      GROUP BY name, bucket ORDER BY bucket, name LIMIT ${limit + 1} OFFSET ${offset}`
  }

  return {
    /** One statement reads the single records at the ends of the range once. All parts aggregate them. */
    read: Effect.fnUntraced(function* (query: DashboardQuery, watermark: number) {
      const { interval = "hour" } = query
      const range = yield* groups.divide(query, watermark, "day")
      const seriesRange = interval === "day" ? range : yield* groups.divide(query, watermark, interval)
      const page = pageOf(query.timeseries_limit, query.timeseries_offset)
      const servicePage = pageOf(query.service_timeseries_limit, query.service_timeseries_offset)
      const parts = [
        sql`SELECT 'all' AS dimension, '' AS name, '' AS display_name, ${usageSql.sums}, NULL::timestamptz AS bucket
          FROM (${groups.grouped(query, range, "all", merged)}) AS matching`,
        sql`SELECT *, NULL::timestamptz AS bucket
          FROM (${breakdowns.pages(groups.groupedBy(commonBreakdowns, query, range, merged), query)}) AS pages`,
        series(query, seriesRange, "series", page),
        series(query, seriesRange, "service_series", servicePage)
      ]
      const rows = yield* dashboardRows.all(
        sql`WITH edges AS MATERIALIZED (${usageSql.bucketed(usageSql.singleEvents(query, range.events), interval)}),
            merged AS MATERIALIZED (${usageSql.merged(groups.rest(query, range, "keys", edges))})
          ${sql.join(" UNION ALL ", false)(parts.map((part) => sql`(${part})`))}`.unprepared
      )
      const of = (dimension: string) => rows.filter((row) => row.dimension === dimension)
      const [all] = of("all")
      if (all === undefined) return yield* Effect.die("A sum without groups has a row even if nothing matches.")
      const buckets = of("series").flatMap(toBucket)
      const serviceBuckets = of("service_series").flatMap(toBucket)
      return {
        summary: UsageSql.toSummary(all),
        breakdowns: {
          projects: of("project").map(toGroup),
          keys: of("key").map(toGroup),
          teams: of("team").map(toGroup),
          services: of("service").map(toGroup),
          endpoints: of("endpoint").map(toGroup),
          providers: of("provider").map(toGroup),
          models: of("model").map(toGroup)
        },
        timeseries: buckets.slice(0, page.limit).map(({ bucket, summary }) => ({ bucket, summary })),
        service_timeseries: serviceBuckets.slice(0, servicePage.limit),
        timeseries_page: { ...page, has_more: buckets.length > page.limit },
        service_timeseries_page: { ...servicePage, has_more: serviceBuckets.length > servicePage.limit }
      }
    })
  }
}

const pageOf = (limit = defaultSeriesLimit, offset = 0): Page => ({ limit, offset })

const dashboardRows = computedRows(
  Schema.Struct({ dimension: Schema.String, ...groupFields, bucket: Schema.NullOr(Schema.DateTimeUtcFromDate) })
)
type DashboardRow = Effect.Success<ReturnType<typeof dashboardRows.only>>

const toBucket = (row: DashboardRow) =>
  row.bucket === null ? [] : [{ bucket: row.bucket, name: row.name, summary: UsageSql.toSummary(row) }]
