import { Effect, Layer, Metric, Schedule } from "effect"
import { shutdownSeconds } from "../../process/ShutdownTimeouts.ts"
import { Database } from "../../services/Database.ts"
import { Redis, type Script } from "../../services/Redis.ts"
import * as SqlState from "../../services/SqlState.ts"
import { usageQueue } from "../../state/UsageQueue.ts"
import * as UsageRow from "../../state/UsageRow.ts"
import { statusOfEvent } from "../../state/UsageSums.ts"
import { minuteStatement } from "./MinuteSums.ts"
import { rollupStatement } from "./UsageRollup.ts"

/** Moves usage records from the Redis queue to the database. At shutdown it moves the remaining records. */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const batch = yield* Effect.map(Effect.context<Database | Redis>(), (context) => Effect.provide(tryBatch, context))
    // A full batch means that more records may wait, so the next batch follows at once.
    const all = Effect.repeat(batch, { while: (written) => written === batchSize })
    const round = all.pipe(
      Effect.tapError((cause) =>
        Effect.logWarning(
          `usage records cannot be written, because ${cause._tag === "RedisError" ? "Redis" : "the database"} failed; retrying`,
          { cause }
        )
      ),
      Effect.retry(Schedule.min([Schedule.exponential("200 millis"), Schedule.spaced("2 seconds")]))
    )
    // The other process may also end. It does not see records that were queued after it read its last batch.
    const rest = Effect.repeat(all, {
      while: (written) => written === "contested",
      schedule: Schedule.spaced(lockPauseMs)
    })
    yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(rest, `${shutdownSeconds.usageWriter} seconds`)))
    yield* Effect.forkScoped(Effect.repeat(round, Schedule.spaced(pauseMs)))
  })
)

export const batchSize = 1000
const pauseMs = 200
const lockPauseMs = 20

const recordsWritten = Metric.counter("gateway_usage_records_written_total", {
  description: "Usage records that this process wrote to the database",
  incremental: true
})

/**
 * Writes a batch before removing it from the queue. A crash in between repeats the write, which is idempotent. Returns the
 * number of records, or `contested` if another process is writing, or has removed some of the same records meanwhile.
 */
const tryBatch = Effect.gen(function* () {
  const redis = yield* Redis
  const keys = [redis.key(usageQueue), redis.key(`${usageQueue}:taken`)]
  const { count, records, taken } = yield* redis.run(readOldest, keys, [batchSize])
  if (count === 0) return 0
  const hasLock = yield* Effect.catchIf(insert(records), SqlState.isCausedByValues, () =>
    insertEach(records.split("\n"))
  )
  if (!hasLock) return "contested"
  return (yield* redis.run(removeTaken, keys, [taken, count])) ? count : "contested"
}).pipe(Effect.withSpan("UsageWriter.writeBatch"))

/** Returns the number of records that it removed from the queue. */
export const writeBatch = Effect.map(tryBatch, (written) => (written === "contested" ? 0 : written))

interface Batch {
  readonly taken: string
  readonly count: number
  /** One line per record. The gateway passes the lines on unparsed, because decoding them took 10 % of its time. */
  readonly records: string
}

/** KEYS: usage queue, number of removed records. ARGV: batch size. Joining the records saves 3 µs per record. */
const readOldest: Script<Batch> = {
  name: "oldest",
  lua: `
local records = redis.call('LRANGE', KEYS[1], '0', ARGV[1] - 1)
return { redis.call('GET', KEYS[2]) or '0', #records, table.concat(records, '\\n') }`,
  step: (call, [queue = "", counter = ""], [most = ""]) => {
    const reply = call("LRANGE", queue, "0", Number(most) - 1)
    const records = Array.isArray(reply) ? reply : []
    return [call("GET", counter) ?? "0", records.length, records.join("\n")]
  },
  decode: (reply) => {
    const [taken, count, records] = Array.isArray(reply) ? reply : []
    return { taken: String(taken), count: Number(count), records: String(records) }
  }
}

/**
 * KEYS: usage queue, number of records ever removed. ARGV: the number of removed records when the batch was read, size
 * of the batch. Removes nothing, and returns false, if another process has removed some of the batch. LTRIM runs first, because a full
 * Redis refuses a script whose first write needs memory.
 */
const removeTaken: Script<boolean> = {
  name: "take",
  lua: `
if (redis.call('GET', KEYS[2]) or '0') ~= ARGV[1] then return 0 end
redis.call('LTRIM', KEYS[1], ARGV[2], '-1')
redis.call('INCRBY', KEYS[2], ARGV[2])
return 1`,
  step: (call, [queue = "", counter = ""], [taken = "", count = ""]) => {
    if ((call("GET", counter) ?? "0") !== taken) return 0
    call("LTRIM", queue, count, "-1")
    call("INCRBY", counter, count)
    return 1
  },
  decode: (reply) => reply === 1
}

const writerLock = 7_238_411

/** Writes the records one by one and skips those with values that the database rejects. Other errors are retried. */
const insertEach = Effect.fnUntraced(function* (records: ReadonlyArray<string>) {
  for (const record of records) {
    const hasLock = yield* Effect.catchIf(insert(record), SqlState.isCausedByValues, (error) =>
      Effect.as(
        Effect.logError("the database rejects a usage record; the record is lost", {
          request: record.split("\t", 1)[0],
          error
        }),
        true
      )
    )
    if (!hasLock) return false
  }
  return true
})

/**
 * Writes records with one statement. Returns false if another process holds the lock. \`last_used_at\` is exact to a
 * minute, because lists are sorted by it, and each update of an indexed column writes to every index. The statement selects `until` as
 * a single value, because PostgreSQL took a second to plan a join with a table without statistics.
 */
const insert = (records: string) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    const [lock] = yield* sql<{
      mine: boolean
      added: number
    }>`WITH lock AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(${writerLock}) AS mine),
      lines AS MATERIALIZED (SELECT string_to_array(line, E'\t', '') AS fields
      FROM lock, string_to_table(${records}, E'\n') AS line WHERE lock.mine),
      told AS (SELECT ${sql.literal(fieldColumnsSql)} FROM lines),
      seen AS (SELECT *, CASE WHEN NOT (${sql.literal(isAnsweredSql)}) THEN ${sql.literal(isKnownModelSql)} END AS model_known FROM told),
      used AS (UPDATE api_keys SET last_used_at = greatest(last_used_at, latest.at)
      FROM (SELECT key_id, to_timestamp(max(created_at) / 1000.0) AS at FROM seen GROUP BY key_id) AS latest
      WHERE api_keys.id = latest.key_id AND coalesce(last_used_at < latest.at - interval '1 minute', true)),
      added AS (INSERT INTO usage_events (created_at, status, model_known, ${sql.literal(eventColumnsSql)})
      SELECT to_timestamp(created_at / 1000.0), CASE WHEN ${sql.literal(statusOfEvent)} < 400 THEN 'success' ELSE 'failure' END, model_known,
      ${sql.literal(eventColumnsSql)} FROM seen
      ON CONFLICT (created_at, id) DO NOTHING RETURNING id, created_at),
      guarded AS (INSERT INTO guardrail_execution_events (id, created_at, request_id, key_id, project_id, route, model,
      provider, guardrail_name, mode, action, failure_policy, latency_ms, reason, metadata)
      SELECT md5(seen.id::text || ran.place)::uuid, to_timestamp(seen.created_at / 1000.0) + ran.place * interval '1 microsecond',
      request_id, key_id, project_id, route, model, provider, ran.execution->>'guardrail_name',
      ran.execution->>'mode', ran.execution->>'action', ran.execution->>'failure_policy',
      (ran.execution->>'latency_ms')::bigint, ran.execution->>'reason', (ran.execution->'metadata')::jsonb
      FROM seen, json_array_elements(seen.guardrails) WITH ORDINALITY AS ran (execution, place)
      ON CONFLICT (created_at, id) DO NOTHING),
      made AS (INSERT INTO upstream_objects (provider, kind, id, key_id, project_id, created_at)
      SELECT DISTINCT ON (provider, object->>'kind', object->>'id') provider, object->>'kind', object->>'id', key_id, project_id,
      to_timestamp(created_at / 1000.0) FROM seen, json_array_elements(seen.objects) AS object
      ORDER BY provider, object->>'kind', object->>'id', created_at ON CONFLICT DO NOTHING),
      mark AS MATERIALIZED (SELECT until, minutes_until FROM lock, usage_rolled WHERE lock.mine FOR SHARE OF usage_rolled),
      late AS MATERIALIZED (SELECT added.created_at, project_id, key_id, route, model, model_known, provider, service_name, http_method,
          endpoint_template, endpoint_path, status_code, task_id, run_id, team_id, client, subject, usage_source, cost_source, error_code, input_tokens,
          output_tokens, total_tokens, cached_input_tokens, cache_write_tokens, reasoning_tokens, cost_nanos, latency_ms,
          first_byte_ms, gateway_ms, upstream_ms, fallback_count
        FROM added JOIN seen USING (id) WHERE added.created_at < (SELECT greatest(until, minutes_until) FROM mark)),
      late_sums AS (${rollupStatement(sql, sql`late WHERE created_at < (SELECT until FROM mark)`)}),
      late_minutes AS (${minuteStatement(sql, sql`late WHERE created_at < (SELECT minutes_until FROM mark)`)})
      SELECT mine, (SELECT count(*) FROM added)::integer AS added FROM lock`
    if (lock?.mine !== true) return false
    yield* Metric.update(recordsWritten, lock.added)
    return true
  })

const fieldColumnsSql = UsageRow.columns
  .map(([name, type], index) => `fields[${index + 1}]::${type} AS ${name}`)
  .join(", ")

/** SQL: true if the upstream accepted the model. A service may ignore the model, so a cost is required there too. */
const isAnsweredSql = `model IS NULL OR usage_source = 'reported' OR status_code < 400 AND (service_name IS NULL OR coalesce(cost_nanos, 0) > 0)`

/** SQL: true if a price, policy or the key's allowed models name the model, or an upstream has responded for it. */
const isKnownModelSql = `(
  model IN (
    SELECT model FROM model_prices
    UNION SELECT scope_id FROM policy_layers WHERE layer_kind = 'model'
    UNION SELECT jsonb_array_elements_text(policy->'allowed_models') FROM policy_layers
      WHERE jsonb_typeof(policy->'allowed_models') = 'array'
  )
  OR coalesce((SELECT jsonb_exists(policy->'allowed_models', model) FROM api_keys WHERE api_keys.id = key_id), false)
  OR coalesce((SELECT true FROM usage_rollups WHERE usage_rollups.model = told.model AND usage_rollups.status_code < 400
    LIMIT 1), false)
)`

const eventColumnsSql = UsageRow.columns
  .map(([name]) => name)
  .filter((name) => name !== "created_at" && name !== "guardrails" && name !== "objects")
  .join(", ")
