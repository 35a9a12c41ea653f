import { Clock, Effect, Layer, Schedule } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Fragment } from "effect/sql/Statement"
import {
  admittedEvent,
  dimensions,
  endpointOfEvent,
  modelOfEvent,
  statusOfEvent,
  summands,
  unpricedEvent
} from "../../policy/UsageSums.ts"
import { Database } from "../../services/Database.ts"

/**
 * The sums contain exactly the events before `usage_rolled.until`. Sums plus later events are therefore complete.
 * `until` lags behind the clock, because summing each small batch would write nearly as many sums as records. The
 * statement that inserts an older record also adds it to the sums.
 */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const step = yield* Effect.map(Effect.context<Database>(), (context) =>
      Effect.provide(
        Effect.flatMap(Clock.currentTimeMillis, (now) => advanceMark(now - lagMs)),
        context
      )
    )
    const all = Effect.repeat(step, { while: (more) => more, schedule: Schedule.spaced(stepPauseMs) })
    const round = Effect.catch(all, (cause) =>
      Effect.logWarning("summing usage failed; the next attempt follows in a minute", { cause })
    )
    yield* Effect.forkScoped(Effect.repeat(round, Schedule.spaced(roundPauseMs)))
  })
)

/** The lag is longer than nearly all requests. A record has its request's start time but is written at the end. */
const lagMs = 5 * 60_000
const roundPauseMs = 60_000
/** The pause leaves the database time for requests and for the usage writer. */
const stepPauseMs = 50

const stepSize = 20_000

/** Adds the next events before `before` (epoch milliseconds) to the sums. Returns true if more events remain. */
export const advanceMark = Effect.fn("UsageRollup.advanceMark")(function* (before: number, size: number = stepSize) {
  const { sql, transaction } = yield* Database
  return yield* transaction(
    Effect.gen(function* () {
      // The row lock waits until writers commit. The sums then miss no event before the new `until`.
      const [mark] = yield* sql<{ until: Date; full: Date | null }>`
          SELECT until, (SELECT created_at FROM usage_events WHERE created_at >= until
            ORDER BY created_at OFFSET ${size} LIMIT 1) AS full
          FROM usage_rolled FOR UPDATE`
      if (mark === undefined) return false
      const from = mark.until.getTime()
      const full = mark.full === null ? before : Math.max(from + 1, mark.full.getTime())
      const until = new Date(Math.min(full, before))
      if (until.getTime() <= from) return false
      yield* sql`${rollupStatement(sql, sql`usage_events WHERE created_at >= ${mark.until} AND created_at < ${until}`)}`
      yield* sql`UPDATE usage_rolled SET until = ${until}`
      return mark.full !== null && full < before
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
      count(*) AS request_count,
      count(*) FILTER (WHERE ${sql.literal(admittedEvent)}) AS admitted_count,
      count(*) FILTER (WHERE usage_source = 'reported') AS reported_count,
      count(*) FILTER (WHERE usage_source = 'estimated') AS estimated_count,
      count(*) FILTER (WHERE error_code = 'guardrail_blocked') AS guardrail_block_count,
      count(*) FILTER (WHERE cost_nanos >= 1000000000) AS expensive_request_count,
      count(*) FILTER (WHERE ${sql.literal(unpricedEvent)}) AS unpriced_count,
      coalesce(sum(input_tokens), 0) AS input_tokens,
      coalesce(sum(output_tokens), 0) AS output_tokens,
      coalesce(sum(total_tokens), 0) AS total_tokens,
      coalesce(sum(cached_input_tokens), 0) AS cached_input_tokens,
      coalesce(sum(cache_write_tokens), 0) AS cache_write_tokens,
      coalesce(sum(reasoning_tokens), 0) AS reasoning_tokens,
      coalesce(sum(cost_nanos), 0) AS cost_nanos,
      sum(latency_ms) AS total_latency_ms,
      sum(fallback_count) AS fallback_count
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
