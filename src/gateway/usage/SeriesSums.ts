import { Effect, Struct } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { Database } from "../../services/Database.ts"
import * as Quantiles from "../../state/Quantiles.ts"
import { labels, minuteLabels, summands } from "../../state/UsageSums.ts"
import { floorTo, type Grain, hoursOf, inSnapshot, type Span, stepMs, within } from "./SummedBuckets.ts"
import { sumTaskTypes } from "./TaskTypeSums.ts"

/**
 * Sums the hours and days that are over by one dimension at a time. It compares the numbers of requests with those of
 * `usage_rollups`, so it also finds sums to which a late event was added since, by a process of any version. Hours that
 * the sums by the minute do not contain yet wait for them, because histograms are made of these.
 */
export const sumFinishedBuckets = Effect.gen(function* () {
  const { sql } = yield* Database
  const [mark] = yield* sql<{ until: Date }>`SELECT least(until, minutes_until) AS until FROM usage_rolled`
  if (mark === undefined) return
  const lastDay = floorTo(mark.until.getTime(), stepMs.day)
  yield* sumHours({ start: lastDay - stepMs.day, end: floorTo(mark.until.getTime(), stepMs.hour) })
  const days = [...(yield* outdated("day", { start: Number.NEGATIVE_INFINITY, end: lastDay })), ...(yield* unmarked)]
  for (const day of new Set(days)) {
    yield* sumHours(hoursOf(day))
    yield* inSnapshot(sumDay(day))
  }
  yield* sumTaskTypes(mark.until.getTime())
}).pipe(Effect.withSpan("SeriesSums.sumFinishedBuckets"))

const sumHours = Effect.fnUntraced(function* (span: Span) {
  yield* Effect.forEach(yield* outdated("hour", span), (hour) => inSnapshot(sumBucket("hour", hour)), { discard: true })
})

/** Sums hours again to which a late event was added meanwhile, so that those of a whole day have what the day has. */
const sumDay = Effect.fnUntraced(function* (day: number) {
  yield* Effect.forEach(yield* outdated("hour", hoursOf(day)), (hour) => sumBucket("hour", hour), { discard: true })
  yield* sumBucket("day", day)
  const { sql } = yield* Database
  // By the statistics, a table that was filled a moment ago is empty, and a nested loop over both sides took minutes.
  yield* sql`SET LOCAL enable_nestloop = off`
  yield* markOtherDays(sql, new Date(day))
})

/** Newest first, because people mostly ask about the last days. */
const outdated = Effect.fnUntraced(function* (grain: Grain, span: Span) {
  const { sql } = yield* Database
  const spanned = within(sql, span)
  const rows = yield* sql<{ bucket: Date }>`
    SELECT bucket FROM (
      SELECT bucket, sum(request_count) AS requests FROM usage_rollups
      WHERE grain = ${grain} AND part = 'overview' AND ${spanned} GROUP BY bucket
    ) AS whole LEFT JOIN (
      SELECT bucket, sum(request_count) AS requests FROM usage_series
      WHERE grain = ${grain} AND dimension = 'all' AND ${spanned} GROUP BY bucket
    ) AS summed USING (bucket)
    WHERE whole.requests IS DISTINCT FROM summed.requests ORDER BY bucket DESC`
  return rows.map(({ bucket }) => bucket.getTime())
})

/** Days that an older version summed. */
const unmarked = Effect.gen(function* () {
  const { sql } = yield* Database
  const rows = yield* sql<{ bucket: Date }>`
    SELECT DISTINCT bucket FROM usage_series
    WHERE grain = 'day' AND dimension = 'task' AND only_row IS NULL ORDER BY bucket DESC`
  return rows.map(({ bucket }) => bucket.getTime())
})

const sumBucket = (grain: Grain, bucket: number) =>
  Effect.flatMap(Database, ({ sql }) => Effect.asVoid(bucketStatement(sql, grain, bucket)))

/**
 * The histograms are those of the next finer sums, where these have all requests. Else the stored ones remain. The rows
 * of a dimension are inserted together, so that a query for it reads few pages.
 */
const bucketStatement = (sql: SqlClient, grain: Grain, bucket: number) => {
  const at = new Date(bucket)
  const finer = sql`grain = ${grain === "day" ? "hour" : "minute"} AND dimension IN ${sql.in(Struct.keys(minuteLabels))}
    AND bucket >= ${at} AND bucket < ${new Date(bucket + stepMs[grain])}`
  return sql`
    INSERT INTO usage_series (grain, dimension, bucket, series, name, status_code, ${sql.literal(columns.join(", "))})
    WITH sums AS (
      SELECT dimension, name, status_code, ${sql.literal(summed)}
      FROM usage_rollups CROSS JOIN LATERAL (VALUES ${sql.literal(dimensionRows)}) AS labels (dimension, of_part, name)
      WHERE grain = ${grain} AND bucket = ${at} AND (of_part = part OR of_part = 'keys' AND part IN ('untasked', 'tasked')
        OR of_part = 'tasks' AND part IN ('untasked', 'task'))
      GROUP BY 1, 2, 3
    ), complete AS (
      SELECT 1 FROM usage_series WHERE ${finer} AND dimension = 'all'
      HAVING sum(request_count) = (SELECT sum(request_count) FROM sums WHERE dimension = 'all')
        AND bool_and(latency IS NOT NULL)
    ), counts AS (
      SELECT dimension, name, status_code, measure, ${sql.literal(Quantiles.numberOf("element"))} AS number,
        sum(${sql.literal(Quantiles.countOf("element"))})::bigint AS count
      FROM usage_series CROSS JOIN LATERAL (${sql.literal(storedElements)}) AS elements (measure, element)
      WHERE ${finer} AND EXISTS (SELECT 1 FROM complete) GROUP BY 1, 2, 3, 4, 5
    ), histograms AS (
      SELECT dimension, name, status_code, ${sql.literal(histogramColumns)} FROM counts GROUP BY 1, 2, 3
    )
    SELECT ${grain}, dimension, ${at}::timestamptz, md5(ROW(name, status_code)::text)::uuid, name, status_code,
      ${sql.literal([...summands, ...histograms].join(", "))}, ${grain === "day" ? isOnlyRow(sql, at) : sql`NULL::boolean`}
    FROM sums LEFT JOIN histograms USING (dimension, name, status_code)
    ORDER BY dimension, name
    ON CONFLICT (grain, dimension, bucket, series) DO UPDATE SET ${sql.literal(replaced)}`
}

/** SQL: whether no other day, and no other row of this day, has the task. NULL in other dimensions. */
const isOnlyRow = (sql: SqlClient, day: Date) => sql`
  CASE WHEN dimension = 'task' THEN count(*) OVER (PARTITION BY dimension, name) = 1 AND NOT EXISTS (
    SELECT 1 FROM usage_series AS other WHERE other.grain = 'day' AND other.dimension = 'task' AND other.name = sums.name
      AND other.bucket <> ${day}) END`

/** Rows of other days are no longer the only ones of their tasks. */
const markOtherDays = (sql: SqlClient, day: Date) => sql`
  UPDATE usage_series SET only_row = false
  WHERE grain = 'day' AND dimension = 'task' AND only_row AND bucket <> ${day} AND name IN (
    SELECT name FROM usage_series WHERE grain = 'day' AND dimension = 'task' AND bucket = ${day} AND NOT only_row)`

const histograms = Object.values(Quantiles.measures)

const columns = [...summands, ...histograms, "only_row"]

const summed = summands.map((name) => `sum(coalesce(${name}, 0)) AS ${name}`).join(", ")

const partOf: Readonly<Record<keyof typeof labels, "overview" | "keys" | "tasks">> = {
  project: "keys",
  key: "keys",
  team: "keys",
  service: "overview",
  endpoint: "keys",
  provider: "overview",
  model: "keys",
  task: "tasks",
  client: "keys",
  subject: "keys"
}

const dimensionRows = [
  "('all', 'overview', '')",
  ...Struct.keys(labels).map((name) => `('${name}', '${partOf[name]}', ${labels[name]})`)
].join(", ")

const storedElements = Object.values(Quantiles.measures)
  .map((measure) => `SELECT '${measure}', unnest(${measure})`)
  .join(" UNION ALL ")

const histogramColumns = histograms
  .map(
    (measure) => `array_agg(${Quantiles.packed("number", "count")}) FILTER (WHERE measure = '${measure}') AS ${measure}`
  )
  .join(", ")

const replaced = [
  ...summands.map((name) => `${name} = excluded.${name}`),
  ...histograms.map((name) => `${name} = coalesce(excluded.${name}, usage_series.${name})`),
  "only_row = excluded.only_row"
].join(", ")
