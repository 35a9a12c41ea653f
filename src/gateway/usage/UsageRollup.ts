import { Clock, Effect, Layer, Schedule } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Fragment } from "effect/sql/Statement"
import { Database } from "../../services/Database.ts"
import {
  admittedEvent,
  dimensions,
  endpointOfEvent,
  minuteSumsHours,
  modelOfEvent,
  statusOfEvent,
  summands,
  summedEvents
} from "../../state/UsageSums.ts"
import { minuteStatement } from "./MinuteSums.ts"
import { sumFinishedBuckets } from "./SeriesSums.ts"
import { sumLearnedTypes } from "./TaskTypeSums.ts"

/**
 * The sums contain exactly the events before `usage_rolled.until`. Sums plus later events are therefore complete.
 * `until` lags behind the clock, because summing each small batch would write nearly as many sums as records. The
 * statement that inserts an older record also adds it to the sums.
 */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const context = yield* Effect.context<Database>()
    const follow = <E>(advance: (before: number) => Effect.Effect<boolean, E, Database>) =>
      Clock.currentTimeMillis.pipe(
        Effect.flatMap((now) => advance(now - lagMs)),
        Effect.repeat({ while: (more) => more, schedule: Schedule.spaced(stepPauseMs) })
      )
    const rounds = <E>(round: Effect.Effect<void, E, Database>, pauseMs: number = roundPauseMs) =>
      round.pipe(
        Effect.catch((cause) => Effect.logWarning("summing usage failed; the next round attempts it again", { cause })),
        Effect.provide(context),
        Effect.repeat(Schedule.spaced(pauseMs)),
        Effect.forkScoped
      )
    yield* rounds(
      Effect.andThen(
        follow((before) => advanceMark(before)),
        follow((before) => advanceMinutes(before))
      )
    )
    // After an upgrade, the first of these rounds takes minutes.
    yield* rounds(sumFinishedBuckets)
    yield* rounds(sumLearnedTypes, typesPauseMs)
  })
)

/** The lag is longer than nearly all requests. A record has its request's start time but is written at the end. */
const lagMs = 5 * 60_000
const roundPauseMs = 60_000
/** A round reads the tasks of two days, also where nothing was learned. */
const typesPauseMs = 10 * 60_000
/** The pause leaves the database time for requests and for the usage writer. */
const stepPauseMs = 50

const stepSize = 20_000

/** Adds the next events before `before` (epoch milliseconds) to the sums. Returns true if more events remain. */
export const advanceMark = Effect.fn("UsageRollup.advanceMark")((before: number, size: number = stepSize) =>
  advance("until", Number.NEGATIVE_INFINITY, before, size, rollupStatement)
)

/** Adds the next events before `before` to the sums by the minute. Leaves out what would soon be deleted. */
export const advanceMinutes = Effect.fn("UsageRollup.advanceMinutes")((before: number, size: number = stepSize) =>
  advance("minutes_until", before - minuteSumsHours * 3_600_000, before, size, minuteStatement)
)

const advance = Effect.fnUntraced(function* (
  mark: "until" | "minutes_until",
  earliest: number,
  before: number,
  size: number,
  statement: (sql: SqlClient, source: Fragment) => Fragment
) {
  const { sql, transaction } = yield* Database
  return yield* transaction(
    Effect.gen(function* () {
      // The row lock waits until writers commit. The sums then miss no event before the new mark.
      const [row] = yield* sql<{ until: Date }>`SELECT ${sql(mark)} AS until FROM usage_rolled FOR UPDATE`
      if (row === undefined) return false
      const from = Math.max(row.until.getTime(), earliest)
      const [next] = yield* sql<{ at: Date }>`SELECT created_at AS at FROM usage_events
        WHERE created_at >= ${new Date(from)} ORDER BY created_at OFFSET ${size} LIMIT 1`
      const full = next === undefined ? before : Math.max(from + 1, next.at.getTime())
      const until = new Date(Math.min(full, before))
      if (until.getTime() <= from) return false
      yield* sql`${statement(sql, sql`usage_events WHERE created_at >= ${new Date(from)} AND created_at < ${until}`)}`
      yield* sql`UPDATE usage_rolled SET ${sql(mark)} = ${until}`
      return next !== undefined && full < before
    })
  )
})

const dimensionColumns = `kept.project_id, kept.key_id, route, kept.model, provider, service_name, kept.http_method, kept.endpoint, status_code,
    kept.task_id, kept.run_id, kept.team_id, kept.client, kept.subject`

const summedColumns = [...summands, "admitted_count"]

export const rollupStatement = (sql: SqlClient, source: Fragment): Fragment => sql`
  INSERT INTO usage_rollups (grain, part, bucket, series, ${sql.literal(dimensions)}, ${sql.literal(summedColumns.join(", "))})
  SELECT grain, part, date_trunc(grain, hour, 'UTC') AS at, md5(ROW(${sql.literal(dimensionColumns)})::text)::uuid,
    ${sql.literal(dimensionColumns)}, ${sql.literal(summedColumns.map((name) => `sum(${name})`).join(", "))}
  FROM (
    SELECT date_trunc('hour', created_at, 'UTC') AS hour, project_id, key_id, route,
      ${sql.literal(modelOfEvent)} AS model, provider, service_name, http_method, ${sql.literal(endpointOfEvent)} AS endpoint,
      ${sql.literal(statusOfEvent)} AS status_code, task_id, run_id, team_id, client, subject,
      ${sql.literal(summedEvents)},
      count(*) FILTER (WHERE ${sql.literal(admittedEvent)}) AS admitted_count
    FROM ${source}
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
  ) AS fresh
  CROSS JOIN (VALUES ('hour'), ('day')) AS grains (grain)
  JOIN (VALUES ('overview', NULL), ('untasked', false), ('tasked', true), ('task', true)) AS parts (part, tasked)
    ON tasked IS NULL OR tasked = (fresh.task_id IS NOT NULL OR fresh.run_id IS NOT NULL)
  LEFT JOIN LATERAL (
    SELECT fresh.project_id, fresh.key_id, fresh.team_id, fresh.model, fresh.http_method, fresh.endpoint,
      fresh.client, fresh.subject,
      CASE WHEN part = 'task' THEN fresh.task_id END AS task_id, CASE WHEN part = 'task' THEN fresh.run_id END AS run_id
    WHERE part <> 'overview'
  ) AS kept ON true
  GROUP BY grain, part, at, ${sql.literal(dimensionColumns)}
  ON CONFLICT (grain, part, bucket, series) DO UPDATE SET
    ${sql.literal(summedColumns.map((name) => `${name} = usage_rollups.${name} + excluded.${name}`).join(", "))}`
