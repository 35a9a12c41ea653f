import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Fragment } from "effect/sql/Statement"
import { type Dimension, labels, summands } from "../../state/UsageSums.ts"
import type { UsageFilter } from "../api/usage/UsageApi.ts"
import { computedRows } from "../store/Rows.ts"
import * as UsageSql from "./UsageSql.ts"
import { type RollupGrain, splitRange, type TimeRange } from "./UsageTimeRanges.ts"

/** A range, divided by where its sums are read. */
export interface SummedRange {
  /** Whole hours and days whose sums by one dimension have all requests. */
  readonly narrow: Buckets
  /** Other whole hours and days. Their sums by all dimensions are read. */
  readonly full: Buckets
  /** The same as spans, for filters that the sums by one dimension do not have. */
  readonly days: ReadonlyArray<TimeRange>
  readonly hours: ReadonlyArray<TimeRange>
  /** Spans of single records. */
  readonly events: ReadonlyArray<TimeRange>
}

interface Buckets {
  readonly day: ReadonlyArray<Date>
  readonly hour: ReadonlyArray<Date>
}

/**
 * Sums in groups. Sums by one dimension have few rows, so that most queries for breakdowns and series read them. They
 * cannot be filtered by other dimensions.
 */
export const make = (sql: SqlClient) => {
  const usageSql = UsageSql.make(sql)
  const union = sql.join(" UNION ALL ", false)

  const divide = Effect.fnUntraced(function* (filter: UsageFilter, watermark: number, widest: RollupGrain) {
    const spans = splitRange(UsageSql.rangeOf(filter), watermark, UsageSql.needsEvents(filter) ? "event" : widest)
    if (!isNarrowFilter(filter)) return { ...spans, narrow: none, full: none }
    const { events } = spans
    const { days, hours } = withoutToday(spans, watermark)
    const compared = [
      ...days.map((span) => comparedBuckets("day", span)),
      ...hours.map((span) => comparedBuckets("hour", span))
    ]
    const buckets = compared.length === 0 ? [] : yield* bucketRows.all(sql`${union(compared)}`.unprepared)
    const of = (isNarrow: boolean, grain: string) =>
      buckets.filter((row) => row.narrow === isNarrow && row.grain === grain).map(({ bucket }) => bucket)
    const range: SummedRange = {
      days: [],
      hours: [],
      narrow: { day: of(true, "day"), hour: of(true, "hour") },
      full: { day: of(false, "day"), hour: of(false, "hour") },
      events
    }
    return range
  })

  /** The sums of an hour or day by one dimension may be missing, or lack a late event. */
  const comparedBuckets = (grain: string, span: TimeRange) => {
    const within = sql.and(usageSql.timeConditions(sql.literal("bucket"), span))
    return sql`SELECT ${grain} AS grain, bucket, whole.requests IS NOT DISTINCT FROM narrow.requests AS narrow
      FROM (SELECT bucket, sum(request_count) AS requests FROM usage_rollups
        WHERE grain = ${grain} AND part = 'overview' AND ${within} GROUP BY bucket) AS whole
      LEFT JOIN (SELECT bucket, sum(request_count) AS requests FROM usage_series
        WHERE grain = ${grain} AND dimension = 'all' AND ${within} GROUP BY bucket) AS narrow USING (bucket)`
  }

  const within = (buckets: Buckets, read: (grain: string, condition: Fragment) => Fragment) =>
    (["day", "hour"] as const).flatMap((grain) =>
      buckets[grain].length === 0 ? [] : [read(grain, sql.in("bucket", buckets[grain]))]
    )

  /**
   * Returns what the sums by one dimension do not have, with the columns of `UsageSql.matchingSums`. `events` are the
   * single records.
   */
  const rest = (
    filter: UsageFilter,
    range: SummedRange,
    detail: UsageSql.RollupDetail,
    events = usageSql.singleEvents(filter, range.events)
  ): Fragment => {
    const { days, full, hours } = range
    const spanned = (grain: string) => (span: TimeRange) =>
      usageSql.rollupRows(filter, detail, grain, sql.and(usageSql.timeConditions(sql.literal("bucket"), span)))
    return union([
      ...days.map(spanned("day")),
      ...hours.map(spanned("hour")),
      ...within(full, (grain, condition) => usageSql.rollupRows(filter, detail, grain, condition)),
      ...events
    ])
  }

  /** Adds the label of each row as the column `name`. */
  const labelled = (rows: Fragment, dimension: Dimension | "all"): Fragment => sql`
    SELECT at, ${sql.literal(dimension === "all" ? "''" : labels[dimension])} AS name, status_code, ${summandColumns}
    FROM (${rows}) AS matching`

  /** Returns rows with the columns at, name, status_code and the summands. `others` are the rows of `rest`. */
  const grouped = (
    filter: UsageFilter,
    { narrow }: SummedRange,
    dimension: Dimension | "all",
    others: Fragment
  ): Fragment => union([labelled(others, dimension), ...narrowRows(filter, narrow, dimension)])

  /** The dimension is a literal, so that the planner can use an index on one dimension. */
  const narrowRows = (filter: UsageFilter, narrow: Buckets, dimension: Dimension | "all") =>
    within(
      narrow,
      (grain, condition) => sql`
        SELECT bucket AS at, name, status_code, ${summandColumns} FROM usage_series
        WHERE grain = ${grain} AND dimension = ${sql.literal(`'${dimension}'`)} AND ${condition}
          AND ${sql.and(usageSql.statusConditions(filter, sql.literal("status_code")))}`
    )

  const summandColumns = sql.literal(summands.join(", "))

  /** Returns the rows of whole days that have sums by one dimension, and all other rows, for `grouped`. */
  const byDays = (
    filter: UsageFilter,
    range: SummedRange,
    dimension: Dimension,
    detail: UsageSql.RollupDetail
  ): { readonly days: Fragment; readonly others: Fragment } => {
    const { day, hour } = range.narrow
    return {
      days: union(narrowRows(filter, { day, hour: [] }, dimension)),
      others: grouped(filter, { ...range, narrow: { day: [], hour } }, dimension, rest(filter, range, detail))
    }
  }

  return {
    divide,
    byDays,
    rest,
    grouped,
    labelled,
    rows: (filter: UsageFilter, range: SummedRange, dimension: Dimension | "all", detail: UsageSql.RollupDetail) =>
      grouped(filter, range, dimension, rest(filter, range, detail))
  }
}

/** The sums of today by one dimension are those of its finished hours. */
const withoutToday = (
  { days, hours }: { readonly days: ReadonlyArray<TimeRange>; readonly hours: ReadonlyArray<TimeRange> },
  watermark: number
) => {
  const today = Math.floor(watermark / dayMs) * dayMs
  const finished = days.map(({ end, start }) => ({ start, end: Math.min(end, Math.max(start, today)) }))
  const unfinished = days.map(({ end, start }) => ({ start: Math.max(start, today), end }))
  return { days: finished.filter(isNotEmpty), hours: [...hours, ...unfinished.filter(isNotEmpty)] }
}

const dayMs = 86_400_000

const isNotEmpty = ({ end, start }: TimeRange): boolean => start < end

const none: Buckets = { day: [], hour: [] }

const isNarrowFilter = (filter: UsageFilter): boolean =>
  UsageSql.filterNames.every((name) => narrowFilters.includes(name) || filter[name] === undefined)

const narrowFilters: ReadonlyArray<keyof UsageFilter> = ["from", "to", "status", "status_code"]

const bucketRows = computedRows(
  Schema.Struct({ grain: Schema.Literals(["day", "hour"]), bucket: Schema.Date, narrow: Schema.Boolean })
)
