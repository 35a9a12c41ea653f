import { Effect, Layer, Metric, Schedule } from "effect"
import { Database } from "../services/Database.ts"
import { Redis, type Reply } from "../services/Redis.ts"
import { usageQueue } from "./Limits.ts"

/** Moves queued records into the database, for as long as the layer lives, and what is left when it closes. */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const batch = yield* Effect.map(Effect.context<Database | Redis>(), (context) =>
      Effect.provide(writeBatch, context)
    )
    // a full batch: more is waiting
    const all = Effect.repeat(batch, { while: (written) => written === batchSize })
    const round = all.pipe(
      Effect.tapError((cause) => Effect.logWarning("usage records wait for the database", { cause })),
      Effect.retry(Schedule.min([Schedule.exponential("200 millis"), Schedule.spaced("2 seconds")]))
    )
    yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(all, "5 seconds")))
    yield* Effect.forkScoped(Effect.repeat(round, Schedule.spaced(pauseMs)))
  })
)

export const batchSize = 500
const pauseMs = 200

const written = Metric.counter("gateway_usage_records_written_total", { incremental: true })

/**
 * The oldest records into the database, then out of the queue. A crash between the two writes them again, to no effect.
 * Of several processes one works at a time: the lock spares the others the same work. Answers how many were taken.
 */
export const writeBatch = Effect.gen(function* () {
  const redis = yield* Redis
  const { sql, transaction } = yield* Database
  const queue = redis.key(usageQueue)
  const entries = readEntries(yield* redis.command("XRANGE", queue, "-", "+", "COUNT", batchSize))
  if (entries.length === 0) return 0
  const mine = yield* transaction(
    Effect.gen(function* () {
      const [lock] = yield* sql<{ mine: boolean }>`SELECT pg_try_advisory_xact_lock(${writerLock}) AS mine`
      if (lock?.mine !== true) return false
      // a savepoint: what the database will not take must not stand in the way of the rest
      yield* transaction(insert(entries)).pipe(
        Effect.catchTag("SqlError", (error) =>
          error.isRetryable ? Effect.fail(error) : Effect.forEach(entries, insertAlone, { discard: true })
        )
      )
      return true
    })
  )
  if (!mine) return 0
  yield* redis.command("XDEL", queue, ...entries.map(({ id }) => id))
  yield* Metric.update(written, entries.length)
  return entries.length
})

const writerLock = 7_238_411

const insertAlone = (entry: Entry) =>
  Effect.gen(function* () {
    const { transaction } = yield* Database
    yield* transaction(insert([entry])).pipe(
      Effect.catchTag("SqlError", (error) =>
        error.isRetryable
          ? Effect.fail(error)
          : Effect.logError("the database does not take a usage record; it is left out", { entry: entry.id, error })
      )
    )
  })

interface Entry {
  readonly id: string
  /** A usage record in JSON. The database reads it: decoding it here as well took a tenth of the gateway's time. */
  readonly text: string
}

/** One parameter for any number of records: the statement stays the same, and prepared. */
const insert = (entries: ReadonlyArray<Entry>) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    yield* sql`WITH seen AS (SELECT * FROM jsonb_to_recordset(${`[${entries.map(({ text }) => text).join(",")}]`}::jsonb) AS r (
      id uuid, created_at bigint, request_id text, key_id uuid, project_id uuid, route text, model text,
      provider text, status_code integer, error_code text, latency_ms bigint, usage_source text,
      input_tokens bigint, output_tokens bigint, total_tokens bigint, cached_input_tokens bigint,
      cache_write_tokens bigint, reasoning_tokens bigint, cost_nanos bigint, cost_source text, streamed boolean,
      task_id text, run_id text, trace_id text, fallback_count integer)),
      used AS (UPDATE api_keys SET last_used_at = greatest(last_used_at, latest.at)
      FROM (SELECT key_id, to_timestamp(max(created_at) / 1000.0) AS at FROM seen GROUP BY key_id) AS latest
      WHERE api_keys.id = latest.key_id)
      INSERT INTO usage_events (id, created_at, request_id, key_id, project_id, route, model, provider, status,
      status_code, error_code, latency_ms, usage_source, input_tokens, output_tokens, total_tokens,
      cached_input_tokens, cache_write_tokens, reasoning_tokens, cost_nanos, cost_source, streamed, task_id, run_id,
      trace_id, fallback_count)
      SELECT id, to_timestamp(created_at / 1000.0), request_id, key_id, project_id, route, model, provider,
      CASE WHEN status_code < 400 THEN 'success' ELSE 'failure' END, status_code, error_code, latency_ms,
      usage_source, input_tokens, output_tokens, total_tokens, cached_input_tokens, cache_write_tokens,
      reasoning_tokens, cost_nanos, cost_source, streamed, task_id, run_id, trace_id, fallback_count FROM seen
      ON CONFLICT (created_at, id) DO NOTHING`
  })

const readEntries = (reply: Reply): ReadonlyArray<Entry> =>
  Array.isArray(reply)
    ? reply.flatMap((entry: Reply) => {
        const [id, fields] = Array.isArray(entry) ? entry : []
        const text = Array.isArray(fields) ? fields[1] : undefined
        return typeof id === "string" ? [{ id, text: typeof text === "string" ? text : "" }] : []
      })
    : []
