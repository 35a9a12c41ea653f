import { Effect, Struct } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { Database } from "../../services/Database.ts"
import * as Quantiles from "../../state/Quantiles.ts"
import { labels, minuteLabels, summands } from "../../state/UsageSums.ts"

type Grain = "hour" | "day"

const stepMs: Readonly<Record<Grain, number>> = { hour: 3_600_000, day: 86_400_000 }

/**
 * Sums the hours and days that are over by one dimension at a time. It compares the numbers of requests with those of
 * `usage_rollups`, so it also finds sums to which a late event was added since, by a process of any version.
 */
export const sumFinishedBuckets = Effect.gen(function* () {
  const { sql } = yield* Database
  const [mark] = yield* sql<{ until: Date }>`SELECT until FROM usage_rolled`
  if (mark === undefined) return
  const lastDay = floorTo(mark.until.getTime(), stepMs.day)
  const recent = { start: lastDay - stepMs.day, end: floorTo(mark.until.getTime(), stepMs.hour) }
  yield* Effect.forEach(yield* outdated("hour", recent), (bucket) => sumBucket("hour", bucket), { discard: true })
  for (const day of yield* outdated("day", { start: Number.NEGATIVE_INFINITY, end: lastDay })) {
    const hours = yield* outdated("hour", { start: day, end: day + stepMs.day })
    yield* Effect.forEach(hours, (hour) => sumBucket("hour", hour), { discard: true })
    yield* sumBucket("day", day)
  }
}).pipe(Effect.withSpan("SeriesSums.sumFinishedBuckets"))

/** Newest first, because people mostly ask about the last days. */
const outdated = Effect.fnUntraced(function* (
  grain: Grain,
  { end, start }: { readonly start: number; readonly end: number }
) {
  const { sql } = yield* Database
  const within = sql.and([
    sql`bucket < ${new Date(end)}`,
    ...(Number.isFinite(start) ? [sql`bucket >= ${new Date(start)}`] : [])
  ])
  const rows = yield* sql<{ bucket: Date }>`
    SELECT bucket FROM (
      SELECT bucket, sum(request_count) AS requests FROM usage_rollups
      WHERE grain = ${grain} AND part = 'overview' AND ${within} GROUP BY bucket
    ) AS whole LEFT JOIN (
      SELECT bucket, sum(request_count) AS requests FROM usage_series
      WHERE grain = ${grain} AND dimension = 'all' AND ${within} GROUP BY bucket
    ) AS summed USING (bucket)
    WHERE whole.requests IS DISTINCT FROM summed.requests ORDER BY bucket DESC`
  return rows.map(({ bucket }) => bucket.getTime())
})

/** A PostgreSQL advisory lock. Two processes could otherwise mix the sums of two snapshots in one bucket. */
const summingLock = 7_238_413

/** The pause leaves the database time for requests and for the usage writer. */
const pause = "20 millis"

const sumBucket = Effect.fnUntraced(function* (grain: Grain, bucket: number) {
  const { sql, transaction } = yield* Database
  yield* transaction(
    Effect.gen(function* () {
      const [lock] = yield* sql<{ mine: boolean }>`SELECT pg_try_advisory_xact_lock(${summingLock}) AS mine`
      if (lock?.mine === true) yield* bucketStatement(sql, grain, bucket)
    })
  )
  yield* Effect.sleep(pause)
})

/** The histograms are those of the next finer sums, where these have all requests. Else the stored ones remain. */
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
      ${sql.literal(columns.join(", "))}
    FROM sums LEFT JOIN histograms USING (dimension, name, status_code)
    ON CONFLICT (grain, dimension, bucket, series) DO UPDATE SET ${sql.literal(replaced)}`
}

const histograms = Object.values(Quantiles.measures)

const columns = [...summands, ...histograms]

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
  ...histograms.map((name) => `${name} = coalesce(excluded.${name}, usage_series.${name})`)
].join(", ")

const floorTo = (at: number, step: number): number => Math.floor(at / step) * step
