import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Fragment } from "effect/sql/Statement"
import { type Dimension, labels, summands, taskTypeOf } from "../../state/UsageSums.ts"
import type { UsageFilter } from "../api/usage/UsageApi.ts"
import { computedRows } from "../store/Rows.ts"
import * as UsageSql from "./UsageSql.ts"
import { type RollupGrain, splitRange, type TimeRange, wholeDays } from "./UsageTimeRanges.ts"

/** A range, divided by where its sums are read. */
export interface SummedRange {
  /** Whole hours and days whose sums by one dimension have all requests. */
  readonly narrow: ReadonlyArray<Buckets>
  /** Other whole hours and days. Their sums by all dimensions are read. */
  readonly full: ReadonlyArray<Buckets>
  /** Spans of single records. */
  readonly events: ReadonlyArray<TimeRange>
}

interface Buckets {
  readonly grain: Grain
  /** A condition on the column `bucket`. */
  readonly within: Fragment
}

type Grain = "day" | "hour"

export interface ByDays {
  /** The rows of whole days for which a condition holds. */
  readonly days: (condition: Fragment) => Fragment
  readonly others: Fragment
}

/** The labels of all requests together, and of the types of their tasks, beside those of the dimensions. */
export type Grouping = Dimension | "all" | "task_type"

/** Sums by the type of the task are made after those by all other dimensions. */
const summedLast = (dimension: Grouping): "all" | "task_type" => (dimension === "task_type" ? dimension : "all")

/**
 * Sums in groups. Sums by one dimension have few rows, so that most queries for breakdowns and series read them. They
 * cannot be filtered by other dimensions.
 */
export const make = (sql: SqlClient) => {
  const usageSql = UsageSql.make(sql)
  const union = sql.join(" UNION ALL ", false)
  const spanned = (span: TimeRange) => sql.and(usageSql.timeConditions(sql.literal("bucket"), span))

  const divide = Effect.fnUntraced(function* (
    filter: UsageFilter,
    watermark: number,
    widest: RollupGrain,
    dimension: Grouping = "all"
  ) {
    const { days, events, hours } = splitRange(
      UsageSql.rangeOf(filter),
      watermark,
      UsageSql.needsEvents(filter) ? "event" : widest
    )
    const spans = isNarrowFilter(filter) ? withoutToday({ days, hours }, watermark) : { days, hours }
    const whole = [...spansOf("day", spans.days), ...spansOf("hour", spans.hours)]
    const range: SummedRange = isNarrowFilter(filter)
      ? { ...withoutOutdated(whole, yield* readOutdated(spans, watermark, summedLast(dimension))), events }
      : { narrow: [], full: whole, events }
    return range
  })

  const spansOf = (grain: Grain, spans: ReadonlyArray<TimeRange>): ReadonlyArray<Buckets> =>
    spans.map((span) => ({ grain, within: spanned(span) }))

  /** Mostly there are no outdated buckets, so that the conditions are ranges of an index. */
  const withoutOutdated = (whole: ReadonlyArray<Buckets>, outdated: Readonly<Record<Grain, ReadonlyArray<Date>>>) => ({
    narrow: whole.map(({ grain, within }) => ({
      grain,
      within: outdated[grain].length === 0 ? within : sql`${within} AND NOT ${sql.in("bucket", outdated[grain])}`
    })),
    full: (["day", "hour"] as const).flatMap((grain) =>
      outdated[grain].length === 0 ? [] : [{ grain, within: sql.in("bucket", outdated[grain]) }]
    )
  })

  /** The buckets whose sums by one dimension are missing, or lack a late event. */
  const readOutdated = Effect.fnUntraced(function* (
    { days, hours }: { readonly days: ReadonlyArray<TimeRange>; readonly hours: ReadonlyArray<TimeRange> },
    watermark: number,
    dimension: Grouping
  ) {
    const byDay = hours.map((span) => wholeDays(span, startOfDay(watermark)))
    const compared = [
      ...days.map((span) => differences(dimension, "day", "day", span)),
      ...byDay.flatMap(({ whole }) => whole).map((span) => differences(dimension, "hour", "day", span)),
      ...byDay.flatMap(({ rest }) => rest).map((span) => differences(dimension, "hour", "hour", span))
    ]
    const rows = compared.length === 0 ? [] : yield* differenceRows.all(sql`${union(compared)}`.unprepared)
    const of = (grain: Grain) => rows.filter((row) => row.grain === grain).map(({ bucket }) => bucket)
    return { day: of("day"), hour: of("hour") }
  })

  /**
   * Compares the numbers of requests. Hours are compared by the `step` that contains them: sums never have too many
   * requests, so if those of a day's hours add up to the day, each of them is complete. The sums of days by all
   * dimensions have a fraction of the rows that those of hours have.
   */
  const differences = (dimension: Grouping, grain: Grain, step: Grain, span: TimeRange) => sql`
    SELECT ${grain} AS grain, hour AS bucket
    FROM (SELECT bucket, sum(request_count) AS requests FROM usage_rollups
      WHERE grain = ${step} AND part = 'overview' AND ${spanned(span)} GROUP BY bucket) AS whole
    FULL JOIN (SELECT date_trunc(${step}, bucket, 'UTC') AS bucket, sum(request_count) AS requests FROM usage_series
      WHERE grain = ${grain} AND dimension = ${dimension} AND ${spanned(span)} GROUP BY 1) AS narrow USING (bucket)
    CROSS JOIN LATERAL generate_series(bucket, bucket + ${lastOf(grain, step)}::interval, '1 hour') AS hours (hour)
    WHERE whole.requests IS DISTINCT FROM narrow.requests`

  /**
   * Returns what the sums by one dimension do not have, with the columns of `UsageSql.matchingSums`. `events` are the
   * single records.
   */
  const rest = (
    filter: UsageFilter,
    range: SummedRange,
    detail: UsageSql.RollupDetail,
    events = usageSql.singleEvents(filter, range.events)
  ): Fragment =>
    union([...range.full.map(({ grain, within }) => usageSql.rollupRows(filter, detail, grain, within)), ...events])

  /** Adds the label of each row as the column `name`. */
  const labelled = (rows: Fragment, dimension: Grouping): Fragment => sql`
    SELECT at, ${sql.literal(labelOf(dimension))} AS name, status_code, ${summandColumns}
    FROM (${rows}) AS matching ${dimension === "task_type" ? taskTypes : sql``}`

  /** As a subquery of its own for each row, so that a few tasks are not looked for by reading the whole index of tasks. */
  const taskTypes = sql`
    LEFT JOIN LATERAL (SELECT task_type FROM task_index WHERE task_index.task_id = matching.task_id OFFSET 0) AS types ON true`

  /** Returns rows with the columns at, name, status_code and the summands. `others` are the rows of `rest`. */
  const grouped = (filter: UsageFilter, { narrow }: SummedRange, dimension: Grouping, others: Fragment): Fragment =>
    union([labelled(others, dimension), ...narrowRows(filter, narrow, dimension)])

  /** The dimension is a literal, so that the planner can use an index on one dimension. */
  const narrowRows = (
    filter: UsageFilter,
    narrow: ReadonlyArray<Buckets>,
    dimension: Grouping,
    condition: Fragment = sql`true`
  ): ReadonlyArray<Fragment> =>
    narrow.map(
      ({ grain, within }) => sql`
        SELECT bucket AS at, name, status_code, ${summandColumns} FROM usage_series
        WHERE grain = ${sql.literal(`'${grain}'`)} AND dimension = ${sql.literal(`'${dimension}'`)} AND ${within}
          AND ${condition} AND ${statusConditions(filter)}`
    )

  const statusConditions = (filter: UsageFilter) =>
    sql.and(usageSql.statusConditions(filter, sql.literal("status_code")))

  /** Returns rows with the columns dimension, name, status_code and the summands. `others` are the rows of `rest`. */
  const groupedBy = (
    dimensions: ReadonlyArray<Dimension>,
    filter: UsageFilter,
    { narrow }: SummedRange,
    others: Fragment
  ): Fragment =>
    union([
      sql`SELECT dimension, name, status_code, ${summandColumns} FROM (${others}) AS matching
        CROSS JOIN LATERAL (VALUES ${sql.literal(dimensions.map((name) => `('${name}', ${labels[name]})`).join(", "))})
          AS labelled (dimension, name)`,
      ...narrow.map(
        ({ grain, within }) => sql`
          SELECT dimension, name, status_code, ${summandColumns} FROM usage_series
          WHERE grain = ${grain} AND ${sql.in("dimension", dimensions)} AND ${within} AND ${statusConditions(filter)}`
      )
    ])

  const summandColumns = sql.literal(summands.join(", "))

  /** Returns the rows of whole days that have sums by one dimension, and all other rows, for `grouped`. */
  const byDays = (
    filter: UsageFilter,
    range: SummedRange,
    dimension: Dimension,
    detail: UsageSql.RollupDetail
  ): ByDays => {
    const wholeDays = range.narrow.filter(({ grain }) => grain === "day")
    const narrow = range.narrow.filter(({ grain }) => grain !== "day")
    const days = wholeDays.length === 0 ? [{ grain: "day", within: sql`false` } as const] : wholeDays
    return {
      days: (condition) => union(narrowRows(filter, days, dimension, condition)),
      others: grouped(filter, { ...range, narrow }, dimension, rest(filter, range, detail))
    }
  }

  return {
    divide,
    byDays,
    rest,
    grouped,
    groupedBy,
    labelled,
    rows: (filter: UsageFilter, range: SummedRange, dimension: Grouping, detail: UsageSql.RollupDetail) =>
      grouped(filter, range, dimension, rest(filter, range, detail))
  }
}

const labelOf = (dimension: Grouping): string => {
  if (dimension === "all") return "''"
  return dimension === "task_type" ? taskTypeOf("task_id") : labels[dimension]
}

/** An outdated day stands for its hours where these are compared by the day. */
const lastOf = (grain: Grain, step: Grain): string => (grain === "hour" && step === "day" ? "23 hours" : "0 hours")

/** The sums of today by one dimension are those of its finished hours. */
const withoutToday = (
  { days, hours }: { readonly days: ReadonlyArray<TimeRange>; readonly hours: ReadonlyArray<TimeRange> },
  watermark: number
) => {
  const byDay = days.map((span) => wholeDays(span, startOfDay(watermark)))
  return { days: byDay.flatMap(({ whole }) => whole), hours: [...hours, ...byDay.flatMap(({ rest }) => rest)] }
}

const dayMs = 86_400_000
const startOfDay = (at: number): number => Math.floor(at / dayMs) * dayMs

const isNarrowFilter = (filter: UsageFilter): boolean =>
  UsageSql.filterNames.every((name) => narrowFilters.includes(name) || filter[name] === undefined)

const narrowFilters: ReadonlyArray<keyof UsageFilter> = ["from", "to", "status", "status_code"]

const differenceRows = computedRows(Schema.Struct({ grain: Schema.Literals(["day", "hour"]), bucket: Schema.Date }))
