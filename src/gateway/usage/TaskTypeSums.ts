import { Clock, Effect } from "effect"
import { Database } from "../../services/Database.ts"
import { summands, taskTypeOf } from "../../state/UsageSums.ts"
import { floorTo, type Grain, hoursOf, inSnapshot, type Span, stepMs, within } from "./SummedBuckets.ts"

/**
 * Sums the hours and days before `until` by the types of their tasks, from the sums by task. The sums keep the types of
 * tasks that the index has removed since.
 */
export const sumTaskTypes = Effect.fnUntraced(function* (until: number) {
  const lastDay = floorTo(until, stepMs.day)
  yield* sumIncomplete("hour", { start: lastDay - stepMs.day, end: floorTo(until, stepMs.hour) })
  for (const { bucket } of yield* incomplete("day", { start: Number.NEGATIVE_INFINITY, end: lastDay })) {
    yield* sumIncomplete("hour", hoursOf(bucket.getTime()))
    yield* inSnapshot(sumBucket("day", bucket))
  }
})

/** Sums the hours and days of yesterday and today again whose tasks got a type after they were summed. */
export const sumLearnedTypes = Effect.gen(function* () {
  const today = floorTo(yield* Clock.currentTimeMillis, stepMs.day)
  const recent: Span = { start: today - stepMs.day, end: today + stepMs.day }
  for (const grain of ["hour", "day"] as const) {
    for (const { bucket, complete, untyped } of yield* summedBuckets(grain, recent)) {
      if (!complete || untyped === 0 || (yield* countUntyped(grain, bucket)) >= untyped) continue
      yield* inSnapshot(sumBucket(grain, bucket))
    }
  }
}).pipe(Effect.withSpan("TaskTypeSums.sumLearnedTypes"))

const sumIncomplete = Effect.fnUntraced(function* (grain: Grain, span: Span) {
  const buckets = yield* incomplete(grain, span)
  yield* Effect.forEach(buckets, ({ bucket }) => inSnapshot(sumBucket(grain, bucket)), { discard: true })
})

const incomplete = (grain: Grain, span: Span) =>
  Effect.map(summedBuckets(grain, span), (buckets) => buckets.filter(({ complete }) => !complete))

const requestsOf = (condition: string) => `coalesce(sum(request_count) FILTER (WHERE ${condition}), 0)`

/** The buckets that have sums, newest first, and how many of their requests have a task of no known type. */
const summedBuckets = Effect.fnUntraced(function* (grain: Grain, span: Span) {
  const { sql } = yield* Database
  const rows = yield* sql<{ bucket: Date; complete: boolean; untyped: string }>`
    SELECT bucket, ${sql.literal(`${requestsOf("dimension = 'all'")} = ${requestsOf("dimension = 'task_type'")}`)} AS complete,
      ${sql.literal(requestsOf("dimension = 'task_type' AND name = 'unknown'"))}::text AS untyped
    FROM usage_series WHERE grain = ${grain} AND dimension IN ('all', 'task_type') AND ${within(sql, span)}
    GROUP BY bucket ORDER BY bucket DESC`
  return rows.map(({ untyped, ...row }) => ({ ...row, untyped: Number(untyped) }))
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
const sumBucket = Effect.fnUntraced(function* (grain: Grain, bucket: Date) {
  const { sql } = yield* Database
  yield* sql`DELETE FROM usage_series WHERE grain = ${grain} AND dimension = 'task_type' AND bucket = ${bucket}`
  yield* sql`
    INSERT INTO usage_series (grain, dimension, bucket, series, name, status_code, ${sql.literal(summands.join(", "))})
    SELECT ${grain}, 'task_type', ${bucket}::timestamptz, md5(ROW(type, status_code)::text)::uuid, type, status_code,
      ${sql.literal(summands.map((name) => `sum(${name})`).join(", "))}
    FROM (
      SELECT ${sql.literal(taskTypeOf("name"))} AS type, status_code, ${sql.literal(summands.join(", "))}
      FROM usage_series LEFT JOIN task_index ON task_id = name
      WHERE grain = ${grain} AND dimension = 'task' AND bucket = ${bucket}
    ) AS typed GROUP BY type, status_code ORDER BY type`
})
