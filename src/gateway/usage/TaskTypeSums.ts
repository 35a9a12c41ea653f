import { Effect } from "effect"
import { Database } from "../../services/Database.ts"
import { summands, taskTypeOf } from "../../state/UsageSums.ts"
import { floorTo, type Grain, hoursOf, inSnapshot, type Span, stepMs, within } from "./SummedBuckets.ts"

/**
 * Sums the hours and days before `until` by the types of their tasks, from the sums by task. The sums keep the types of
 * tasks that the index has removed since. A type that the index learns today or tomorrow is added to them.
 */
export const sumTaskTypes = Effect.fnUntraced(function* (until: number) {
  const lastDay = floorTo(until, stepMs.day)
  const recent = lastDay - stepMs.day
  yield* sumOutdated("hour", { start: recent, end: floorTo(until, stepMs.hour) }, recent)
  for (const day of yield* outdated("day", { start: Number.NEGATIVE_INFINITY, end: lastDay }, recent)) {
    yield* sumOutdated("hour", hoursOf(day), recent)
    yield* inSnapshot(sumBucket("day", day))
  }
})

const sumOutdated = Effect.fnUntraced(function* (grain: Grain, span: Span, recent: number) {
  const buckets = yield* outdated(grain, span, recent)
  yield* Effect.forEach(buckets, (bucket) => inSnapshot(sumBucket(grain, bucket)), { discard: true })
})

const requestsOf = (condition: string) => `coalesce(sum(request_count) FILTER (WHERE ${condition}), 0)`

/** Buckets that lack requests, and those since `recent` that have tasks whose types the index has learned. */
const outdated = Effect.fnUntraced(function* (grain: Grain, span: Span, recent: number) {
  const { sql } = yield* Database
  const rows = yield* sql<{ bucket: Date; complete: boolean; untyped: string }>`
    SELECT bucket, ${sql.literal(`${requestsOf("dimension = 'all'")} = ${requestsOf("dimension = 'task_type'")}`)} AS complete,
      ${sql.literal(requestsOf("dimension = 'task_type' AND name = 'unknown'"))}::text AS untyped
    FROM usage_series WHERE grain = ${grain} AND dimension IN ('all', 'task_type') AND ${within(sql, span)}
    GROUP BY bucket ORDER BY bucket DESC`
  const found = yield* Effect.filter(rows, ({ bucket, complete, untyped }) => {
    if (!complete) return Effect.succeed(true)
    if (bucket.getTime() < recent || untyped === "0") return Effect.succeed(false)
    return Effect.map(countUntyped(grain, bucket), (count) => count < Number(untyped))
  })
  return found.map(({ bucket }) => bucket.getTime())
})

/** Reads one bucket. PostgreSQL would compile a statement that reads many, which takes longer than to run it. */
const countUntyped = Effect.fnUntraced(function* (grain: Grain, bucket: Date) {
  const { sql } = yield* Database
  const [row] = yield* sql<{ count: string }>`
    SELECT coalesce(sum(request_count), 0)::text AS count FROM usage_series LEFT JOIN task_index ON task_id = name
    WHERE grain = ${grain} AND dimension = 'task' AND bucket = ${bucket}
      AND ${sql.literal(taskTypeOf("name"))} = 'unknown'`
  return Number(row?.count)
})

/** Rows are deleted, because a type may no longer have any tasks: those of `unknown` get others. */
const sumBucket = Effect.fnUntraced(function* (grain: Grain, bucket: number) {
  const { sql } = yield* Database
  const at = new Date(bucket)
  yield* sql`DELETE FROM usage_series WHERE grain = ${grain} AND dimension = 'task_type' AND bucket = ${at}`
  yield* sql`
    INSERT INTO usage_series (grain, dimension, bucket, series, name, status_code, ${sql.literal(summands.join(", "))})
    SELECT ${grain}, 'task_type', ${at}::timestamptz, md5(ROW(type, status_code)::text)::uuid, type, status_code,
      ${sql.literal(summands.map((name) => `sum(${name})`).join(", "))}
    FROM (
      SELECT ${sql.literal(taskTypeOf("name"))} AS type, status_code, ${sql.literal(summands.join(", "))}
      FROM usage_series LEFT JOIN task_index ON task_id = name
      WHERE grain = ${grain} AND dimension = 'task' AND bucket = ${at}
    ) AS typed GROUP BY type, status_code ORDER BY type`
})
