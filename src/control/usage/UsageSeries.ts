import { Clock, Context, DateTime, Effect, Layer, Schema, Struct } from "effect"
import type { Fragment } from "effect/sql/Statement"
import { Database } from "../../services/Database.ts"
import * as Quantiles from "../../state/Quantiles.ts"
import { type MinuteDimension, minuteLabels, minuteSumsHours, statusOfEvent, summands } from "../../state/UsageSums.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { Operator } from "../api/schema/Security.ts"
import type {
  HistogramBar,
  HistogramQuery,
  SeriesSplit,
  TimeseriesBucket,
  TimeseriesQuery,
  UsageFilter
} from "../api/usage/UsageApi.ts"
import { BoundedQueries, type SummedUsage } from "../store/BoundedQueries.ts"
import { computedRows, type StoreFailure, toStoreFailures } from "../store/Rows.ts"
import { displayNames, groupFields } from "./UsageBreakdowns.ts"
import * as UsageGroups from "./UsageGroups.ts"
import * as UsageSql from "./UsageSql.ts"
import { splitFinished, splitMinutes, type TimeRange, validateRange } from "./UsageTimeRanges.ts"

/** Sums of usage over time: by the minute, the hour or the day, split into groups, and with quantiles of durations. */
export class UsageSeries extends Context.Service<
  UsageSeries,
  {
    /** Sorted by time and name, without buckets that had no requests. */
    readonly read: (
      query: TimeseriesQuery
    ) => Effect.Effect<ReadonlyArray<TimeseriesBucket>, Refused<"invalid_usage_query"> | StoreFailure, Operator>
    /** Counts the requests of a range by how long they took, the shortest first. */
    readonly histogram: (
      query: HistogramQuery
    ) => Effect.Effect<ReadonlyArray<HistogramBar>, Refused<"invalid_usage_query"> | StoreFailure, Operator>
    /** The 95th percentile of the latency of each model since `from`, in milliseconds. */
    readonly latencyByModel: (
      from: DateTime.Utc
    ) => Effect.Effect<ReadonlyMap<string, number>, Refused<"invalid_usage_query"> | StoreFailure, Operator>
  }
>()("svc/control/UsageSeries") {
  static readonly layer = Layer.suspend(() => Layer.effect(UsageSeries, make))
}

const defaults = { limit: 744, groups: 10 }
const hourMs = 3_600_000
const dayMs = 24 * hourMs

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const { runBounded } = yield* BoundedQueries
  const usageSql = UsageSql.make(sql)
  const groups = UsageGroups.make(sql)
  const union = sql.join(" UNION ALL ", false)

  /** Rows with the columns at, name, status_code and the summands. */
  const groupedSums = Effect.fnUntraced(function* (query: TimeseriesQuery, { minutesUntil, until }: SummedUsage) {
    const { interval = "hour", split } = query
    const source = sourceOf(split)
    if (interval !== "minute") {
      const range = yield* groups.divide(query, until, interval, source)
      return groups.rows(query, range, source, detailOf(source))
    }
    const minuteSums = minuteSumsFor(query, source)
    const range = UsageSql.rangeOf(query)
    const { events, minutes } =
      minuteSums === undefined ? { events: [range], minutes: [] } : splitMinutes(range, minutesUntil)
    return union([
      groups.labelled(union(usageSql.singleEvents(query, events)), source),
      ...minutes.map(
        (span) => sql`SELECT bucket AS at, name, status_code, ${sql.literal(summands.join(", "))} FROM usage_series
          WHERE ${storedConditions(query, minuteSums, "minute", span)}`
      )
    ])
  })

  const storedConditions = (
    query: TimeseriesQuery,
    sums: MinuteSums | undefined,
    grain: "minute" | "hour" | "day",
    span: TimeRange
  ): Fragment =>
    sql.and([
      sql`grain = ${grain} AND dimension = ${sums?.dimension ?? "all"}`,
      ...(sums?.name === undefined ? [] : [sql`name = ${sums.name}`]),
      ...usageSql.timeConditions(sql.literal("bucket"), span),
      ...usageSql.statusConditions(query, sql.literal("status_code"))
    ])

  const readSums = Effect.fnUntraced(function* (query: TimeseriesQuery, sums: SummedUsage) {
    const { interval = "hour", split, split_limit = defaults.groups } = query
    const { timeseries_limit = defaults.limit, timeseries_offset = 0 } = query
    const rows = yield* groupedSums(query, sums)
    return yield* sumRows.all(
      sql`WITH matching AS MATERIALIZED (
          SELECT *, ${nameOf(split)} AS split_name FROM (${rows}) AS grouped
        ), groups AS (
          SELECT split_name FROM matching GROUP BY 1 ORDER BY sum(request_count) DESC, 1 LIMIT ${split_limit}
        ), summed AS (
          SELECT date_trunc(${interval}, at, 'UTC') AS bucket, split_name AS name, ${usageSql.sums}
          FROM matching JOIN groups USING (split_name)
          GROUP BY 1, 2 ORDER BY 1, 2 LIMIT ${timeseries_limit} OFFSET ${timeseries_offset}
        )
        SELECT summed.*, ${sql.literal(displayNameOf(split))} AS display_name
        FROM summed ORDER BY bucket, name`.unprepared
    )
  })

  const nameOf = (split: SeriesSplit | undefined) => sql.literal(split === undefined ? "''" : splitNames[split])

  /** Rows with the columns at, split_name, measure, bucket and count. */
  const durations = Effect.fnUntraced(function* (query: TimeseriesQuery, { minutesUntil }: SummedUsage) {
    const { interval = "hour" } = query
    const source = sourceOf(query.split)
    if (!isMinuteSource(source)) return yield* noSuchQuantiles
    const sums = minuteSumsFor(query, source)
    const range = UsageSql.rangeOf(query)
    if (interval === "minute") {
      const { events, minutes } =
        sums === undefined ? { events: [range], minutes: [] } : splitMinutes(range, minutesUntil)
      return union([...eventDurations(query, source, events), ...storedDurations(query, sums, "minute", minutes)])
    }
    if (sums === undefined) return yield* onlyOneFilter
    const until = yield* finishedRow.only(
      sql`SELECT ${lastFinished("day", range)} AS day, ${lastFinished("hour", range)} AS hour`
    )
    const { days, hours, rest } = splitFinished(range, {
      day: interval === "day" ? endOf(until.day, dayMs) : Number.NEGATIVE_INFINITY,
      hour: endOf(until.hour, hourMs)
    })
    const step = interval === "day" ? dayMs : hourMs
    const earliest = Math.ceil((minutesUntil - minuteSumsHours * hourMs) / step) * step
    const parts = rest
      .map(({ end, start }) => ({ start: Math.max(start, earliest), end }))
      .filter(({ end, start }) => start < end)
      .map((part) => splitMinutes(part, minutesUntil))
    return union([
      ...eventDurations(
        query,
        source,
        parts.flatMap(({ events }) => events)
      ),
      ...storedDurations(
        query,
        sums,
        "minute",
        parts.flatMap(({ minutes }) => minutes)
      ),
      ...storedDurations(query, sums, "hour", hours),
      ...storedDurations(query, sums, "day", days)
    ])
  })

  /** The last hour or day of the range that has histograms. They are made when the hour or day is over. */
  const lastFinished = (grain: "hour" | "day", range: TimeRange) => sql`(
    SELECT bucket FROM usage_series WHERE grain = ${grain} AND dimension = 'all' AND latency IS NOT NULL
      AND ${sql.and(usageSql.timeConditions(sql.literal("bucket"), range))} ORDER BY bucket DESC LIMIT 1)`

  const eventDurations = (query: TimeseriesQuery, source: MinuteDimension, spans: ReadonlyArray<TimeRange>) =>
    (spans.length === 0 ? [{ start: 0, end: 0 }] : spans).map(
      (span) => sql`
        SELECT at, split_name, measure, ${sql.literal(Quantiles.bucketOf("ms"))} AS bucket, 1 AS count
        FROM (SELECT ${atOf(query)}, ${nameOf(query.split)} AS split_name, ${sql.literal(measureNames.join(", "))}
          FROM (SELECT created_at AS at, ${sql.literal(minuteLabels[source])} AS name,
              ${sql.literal(statusOfEvent)} AS status_code, ${sql.literal(measureNames.join(", "))}
            FROM usage_events WHERE ${usageSql.eventConditions(query, span)}) AS events) AS labelled
          CROSS JOIN LATERAL (VALUES ${sql.literal(measuredEvents)}) AS measured (measure, ms)
        WHERE ms IS NOT NULL`
    )

  const histogramColumns = sql.literal(Object.values(Quantiles.measures).join(", "))

  const storedDurations = (
    query: TimeseriesQuery,
    sums: MinuteSums | undefined,
    grain: "minute" | "hour" | "day",
    spans: ReadonlyArray<TimeRange>
  ) =>
    spans.map(
      (span) => sql`
        SELECT at, split_name, measure, ${sql.literal(Quantiles.numberOf("element"))}, ${sql.literal(Quantiles.countOf("element"))}
        FROM (SELECT ${atOf(query)}, ${nameOf(query.split)} AS split_name, ${histogramColumns}
          FROM (SELECT bucket AS at, name, status_code, ${histogramColumns} FROM usage_series
            WHERE ${storedConditions(query, sums, grain, span)}) AS rows) AS stored
          CROSS JOIN LATERAL (${sql.literal(storedElements)}) AS elements (measure, element)`
    )

  const atOf = ({ interval = "hour" }: TimeseriesQuery) => sql`date_trunc(${interval}, at, 'UTC') AS at`

  /** There may be hundreds of thousands of counts. Sums of doubles take a fraction of the time, and are exact up to 2^53. */
  const readQuantiles = Effect.fnUntraced(function* (
    query: TimeseriesQuery,
    sums: SummedUsage,
    names: ReadonlyArray<string>
  ) {
    const rows = yield* durations(query, sums)
    return yield* quantileRows.all(
      sql`WITH counts AS (
          SELECT at, split_name, measure, bucket, sum(count::double precision) AS count
          FROM (${rows}) AS durations WHERE ${sql.in("split_name", names)} GROUP BY 1, 2, 3, 4
        ), ranked AS (
          SELECT at, split_name, measure, bucket, sum(count) OVER (of_measure ORDER BY bucket) AS upto,
            sum(count) OVER of_measure AS total
          FROM counts WINDOW of_measure AS (PARTITION BY at, split_name, measure)
        )
        SELECT at, split_name AS name, measure, ${sql.literal(quantileColumns)} FROM ranked GROUP BY 1, 2, 3`.unprepared
    )
  })

  const read = Effect.fn("UsageSeries.read")(function* (query: TimeseriesQuery) {
    const bounded = query.interval === "minute" ? yield* withinMinuteSums(query) : query
    yield* validateRange(bounded)
    const wanted = wantedQuantiles(query.quantiles)
    if (wanted.length > 0 && !isMinuteSource(sourceOf(query.split))) return yield* noSuchQuantiles
    return yield* toStoreFailures(
      runBounded((sums) =>
        Effect.gen(function* () {
          const rows = yield* readSums(bounded, sums)
          const names = [...new Set(rows.map(({ name }) => name))]
          const found = wanted.length === 0 || names.length === 0 ? [] : yield* readQuantiles(bounded, sums, names)
          const quantiles = Map.groupBy(found, ({ at, name }) => placeOf(at, name))
          return rows.map(
            (row): TimeseriesBucket => ({
              bucket: row.bucket,
              ...(query.split !== undefined && { name: row.name, display_name: row.display_name }),
              summary: UsageSql.toSummary(row),
              ...(wanted.length > 0 && {
                quantiles: toQuantiles(quantiles.get(placeOf(row.bucket, row.name)) ?? [], wanted)
              })
            })
          )
        })
      )
    )
  })

  /** Rows with the columns name, bucket and count, of one measure over the whole range. */
  const wholeRange = (query: TimeseriesQuery, measure: MeasureName, sums: SummedUsage) =>
    Effect.map(
      durations(query, sums),
      (rows) => sql`SELECT split_name AS name, bucket, sum(count::double precision) AS count FROM (${rows}) AS durations
        WHERE measure = ${measureNames.indexOf(measure)} GROUP BY 1, 2`
    )

  const histogram = Effect.fn("UsageSeries.histogram")(function* ({ measure, ...range }: HistogramQuery) {
    yield* validateRange(range)
    const to = range.to === undefined ? yield* Clock.currentTimeMillis : DateTime.toEpochMillis(range.to)
    const interval = to - DateTime.toEpochMillis(range.from) <= daysByHour * dayMs ? "hour" : "day"
    const bars = yield* toStoreFailures(
      runBounded((sums) =>
        Effect.flatMap(wholeRange({ ...range, interval }, measure, sums), (rows) =>
          barRows.all(sql`${rows} ORDER BY bucket`.unprepared)
        )
      )
    )
    return bars.map(({ bucket, count }) => ({ ms: durationOf(bucket), request_count: count }))
  })

  const latencyByModel = Effect.fn("UsageSeries.latencyByModel")(function* (from: DateTime.Utc) {
    const found = yield* toStoreFailures(
      runBounded((sums) =>
        Effect.flatMap(wholeRange({ from, interval: "day", split: "model" }, "latency_ms", sums), (rows) =>
          p95Rows.all(
            sql`SELECT name, ${sql.literal(Quantiles.quantileSql("p95"))} AS bucket FROM (
                SELECT name, bucket, sum(count) OVER (of_name ORDER BY bucket) AS upto, sum(count) OVER of_name AS total
                FROM (${rows}) AS counts WINDOW of_name AS (PARTITION BY name)
              ) AS ranked GROUP BY name`.unprepared
          )
        )
      )
    )
    return new Map(found.map(({ bucket, name }) => [name, durationOf(bucket)]))
  })

  return UsageSeries.of({ read, histogram, latencyByModel })
})

/** Histograms of ranges up to so many days are added up from hours, others from days. */
const daysByHour = 3

const durationOf = (bucket: number): number => Number(Quantiles.durationOf(bucket).toPrecision(5))

/** The group of sums by the minute that a query reads. */
interface MinuteSums {
  readonly dimension: MinuteDimension
  readonly name: string | undefined
}

const sourceOf = (split: SeriesSplit | undefined): UsageGroups.Grouping =>
  split === undefined || split === "status" || split === "code" ? "all" : split

const isMinuteSource = (source: UsageGroups.Grouping): source is MinuteDimension => Object.hasOwn(minuteLabels, source)

/** The sums that are not by key have these groups too, and fewer rows. */
const inOverview: ReadonlyArray<UsageGroups.Grouping> = ["all", "service", "provider"]

const detailOf = (source: UsageGroups.Grouping): UsageSql.RollupDetail => {
  if (source === "task_type") return "tasks"
  return inOverview.includes(source) ? "overview" : "keys"
}

/** Sums by the minute have one dimension each. Returns `undefined` if the events must be read. */
const minuteSumsFor = (query: TimeseriesQuery, source: UsageGroups.Grouping): MinuteSums | undefined => {
  if (!isMinuteSource(source)) return undefined
  if (otherFilters.some((name) => query[name] !== undefined)) return undefined
  const { key_id, model, project_id } = query
  const filters: ReadonlyArray<MinuteSums> = [
    { dimension: "key" as const, name: key_id },
    { dimension: "model" as const, name: model },
    { dimension: "project" as const, name: project_id }
  ].filter(({ name }) => name !== undefined)
  const [filter, ...more] = filters
  if (filter === undefined) return { dimension: source, name: undefined }
  // The group `unknown` also has the requests without a model.
  const isExact = more.length === 0 && filter.name !== "unknown"
  return isExact && (source === "all" || source === filter.dimension) ? filter : undefined
}

const otherFilters = [
  "team_id",
  "route",
  "provider",
  "service",
  "method",
  "endpoint",
  "task_id",
  "run_id",
  "subject",
  "client",
  ...UsageSql.eventFilters
] as const satisfies ReadonlyArray<keyof UsageFilter>

/** By default the range is the last hour before its end. */
const withinMinuteSums = Effect.fnUntraced(function* (query: TimeseriesQuery) {
  const now = yield* Clock.currentTimeMillis
  const end = query.to === undefined ? now : Math.min(now, DateTime.toEpochMillis(query.to))
  const from = query.from ?? DateTime.makeUnsafe(end - hourMs)
  if (now - DateTime.toEpochMillis(from) <= minuteSumsHours * hourMs + graceMs) return { ...query, from }
  return yield* new ControlError(
    "invalid_usage_query",
    `Sums by the minute are kept for ${minuteSumsHours} hours. Choose a later from, or interval=hour.`,
    { param: "from" }
  )
})

/** A range of 48 hours stays valid while the request is on its way. Expired sums are deleted only once an hour. */
const graceMs = 60_000

const displayNameOf = (split: SeriesSplit | undefined): string =>
  (split === "key" ? displayNames.key : split === "project" ? displayNames.project : undefined) ?? "summed.name"

const splitNames: Readonly<Record<SeriesSplit, string>> = {
  key: "name",
  model: "name",
  project: "name",
  team: "name",
  service: "name",
  endpoint: "name",
  provider: "name",
  client: "name",
  subject: "name",
  task_type: "name",
  status: "CASE WHEN status_code < 400 THEN 'success' ELSE 'failure' END",
  code: "status_code::text"
}

const wantedQuantiles = (quantiles = ""): ReadonlyArray<Quantiles.QuantileName> =>
  Quantiles.quantileNames.filter((name) => quantiles.split(",").includes(name))

const measureNames = Struct.keys(Quantiles.measures)
type MeasureName = (typeof measureNames)[number]

/** A measure is its place in `measureNames`, because integers sort faster than names. */
const measuredEvents = measureNames.map((measure, place) => `(${place}, ${measure}::bigint)`).join(", ")

const storedElements = measureNames
  .map((measure, place) => `SELECT ${place}, unnest(${Quantiles.measures[measure]})`)
  .join(" UNION ALL ")

const quantileColumns = Quantiles.quantileNames.map((name) => `${Quantiles.quantileSql(name)} AS ${name}`).join(", ")

const onlyOneFilter = new ControlError(
  "invalid_usage_query",
  "Quantiles of hours and days can be filtered by status, status_code and one of key_id, model and project_id, which must be the split if there is one. Leave quantiles out, or use interval=minute.",
  { param: "quantiles" }
)

const noSuchQuantiles = new ControlError(
  "invalid_usage_query",
  "Quantiles are kept for the splits model, key, project, status and code. Leave quantiles out, or choose one of these.",
  { param: "quantiles" }
)

const endOf = (bucket: Date | null, step: number): number =>
  bucket === null ? Number.NEGATIVE_INFINITY : bucket.getTime() + step

const finishedRow = computedRows(Schema.Struct({ day: Schema.NullOr(Schema.Date), hour: Schema.NullOr(Schema.Date) }))

const sumRows = computedRows(
  Schema.Struct({
    bucket: Schema.DateTimeUtcFromDate,
    ...groupFields
  })
)

const quantileRows = computedRows(
  Schema.Struct({
    at: Schema.DateTimeUtcFromDate,
    name: Schema.String,
    measure: Schema.Int,
    p50: Schema.Int,
    p90: Schema.Int,
    p95: Schema.Int,
    p99: Schema.Int
  })
)
const barRows = computedRows(Schema.Struct({ bucket: Schema.Int, count: Schema.Int }))
const p95Rows = computedRows(Schema.Struct({ name: Schema.String, bucket: Schema.Int }))
type QuantileRow = Effect.Success<ReturnType<typeof quantileRows.only>>

const placeOf = (at: DateTime.Utc, name: string): string => `${DateTime.toEpochMillis(at)} ${name}`

/** A measure is `null` if no request of the group has it. */
const toQuantiles = (
  rows: ReadonlyArray<QuantileRow>,
  wanted: ReadonlyArray<Quantiles.QuantileName>
): NonNullable<TimeseriesBucket["quantiles"]> => {
  const of = (measure: MeasureName) => {
    const row = rows.find((row) => row.measure === measureNames.indexOf(measure))
    return row === undefined ? null : Object.fromEntries(wanted.map((name) => [name, durationOf(row[name])]))
  }
  return {
    latency_ms: of("latency_ms"),
    first_byte_ms: of("first_byte_ms"),
    gateway_ms: of("gateway_ms"),
    upstream_ms: of("upstream_ms")
  }
}
