import { createHash } from "node:crypto"
import { Effect, Schema } from "effect"
import { Cursor } from "../../src/control/api/schema/Fields.ts"
import { FilterField } from "../../src/control/api/usage/UsageApi.ts"
import * as LateIndexes from "../../src/gateway/LateIndexes.ts"
import { BenchFailed } from "./Child.ts"
import * as Footprint from "./Footprint.ts"
import * as Gateway from "./Gateway.ts"
import * as Questions from "./Questions.ts"
import type { Store } from "./Store.ts"

export interface Usage {
  readonly rows: number
  /** Seconds. */
  readonly made: number
  readonly summed: number
  /** Rows of sums. */
  readonly sums: number
  readonly questions: ReadonlyArray<Questions.Answered>
  /** MiB of the process that answers. */
  readonly memory: { readonly before: number; readonly peak: number }
}

export const days = 30

/**
 * Makes usage rows of a month that ends now, and waits for their sums, as after an upgrade. Returns the range in
 * milliseconds, and the seconds that the rows and the sums took.
 */
export const fill = Effect.fnUntraced(function* (store: Store, rows: number, say: (line: string) => void) {
  const end = Date.now()
  const start = end - days * 86_400_000

  say(`${rows} rows`)
  yield* lateIndexesOf(store)
  const madeAt = Date.now()
  for (let made = 0; made < rows; made += batch) {
    yield* store.run(rowsOf(made, Math.min(rows, made + batch), start, (end - start) / rows))
  }
  // what autovacuum comes to do on its own
  yield* store.run("VACUUM (ANALYZE) usage_events")
  const made = (Date.now() - madeAt) / 1000

  say("sums")
  const summedAt = Date.now()
  yield* store.run("UPDATE usage_rolled SET until = 'epoch'")
  const behind = store.count(
    "SELECT count(*) FROM usage_rolled WHERE until < (SELECT max(created_at) FROM usage_events) - interval '10 minutes'"
  )
  const unsummed = store.count(`SELECT count(*) FROM (
      SELECT grain, bucket FROM usage_rollups WHERE part = 'overview' AND (
        grain = 'day' AND bucket < date_trunc('day', now(), 'UTC') OR
        grain = 'hour' AND bucket >= date_trunc('day', now(), 'UTC') AND bucket < date_trunc('hour', now() - interval '10 minutes'))
      EXCEPT SELECT grain, bucket FROM usage_series WHERE dimension = 'all'
    ) AS missing`)
  for (const left of [behind, unsummed]) {
    yield* Effect.repeat(Effect.delay(left, "1 second"), { while: (count) => count > 0 })
  }
  const summed = (Date.now() - summedAt) / 1000
  yield* store.run("VACUUM (ANALYZE) usage_rollups, usage_series")
  return { start, end, made, summed }
})

/** Fills a database of its own with usage rows, and asks about them what an operator asks. */
export const run = Effect.fnUntraced(function* (
  rows: number,
  nodeFlags: ReadonlyArray<string>,
  say: (line: string) => void
) {
  const gateway = yield* Gateway.make("usage", "http://127.0.0.1:9", nodeFlags)
  const { store } = gateway
  const before = Footprint.peakMiB(gateway.child.pid)
  const { end, made, start, summed } = yield* fill(store, rows, say)

  const range = `from=${new Date(start + 1_234_567).toISOString()}&to=${new Date(end - 234_567).toISOString()}`
  const day = `from=${new Date(end - 5 * 86_400_000).toISOString()}&to=${new Date(end - 4 * 86_400_000).toISOString()}`
  const deep = yield* cursorAt(store, Math.min(Math.floor(rows / 2), 10_000 * 50))
  const key = yield* store.count(`SELECT count(*) FROM usage_events WHERE key_id = '${keyId}'`)
  const hour = `from=${new Date(end - 3_600_000 - 234_567).toISOString()}&to=${new Date(end - 234_567).toISOString()}`
  const questions: ReadonlyArray<readonly [name: string, path: string]> = [
    [`summary of 30 days, one key (${key} rows)`, `summary?${range}&key_id=${keyId}`],
    ["summary of 30 days", `summary?${range}`],
    ["dashboard of 30 days, by the day", `dashboard?${range}&interval=day`],
    ["dashboard of 30 days, by the hour", `dashboard?${range}`],
    [
      "30 days by the day, split by model, with quantiles",
      `timeseries?${range}&interval=day&split=model&quantiles=p50,p95`
    ],
    [
      "an hour by the minute, split by status, with quantiles",
      `timeseries?${hour}&interval=minute&split=status&quantiles=p50,p95`
    ],
    ["an hour by the minute, split by client", `timeseries?${hour}&interval=minute&split=client`],
    ...["project", "key", "model", "client", "task"].map(
      (name) => [`30 days by ${name}`, `by-${name}?${range}`] as const
    ),
    ["30 days by task, dearest first", `by-task?${range}&sort_by=cost`],
    ["an hour by session", `by-session?${hour}`],
    ["events, first page", "events"],
    ["events of a key that failed, first page", `events?key_id=${keyId}&status=failure`],
    ["events, the page 10,000 pages down, by cursor", `events?cursor=${deep}`],
    ["events of 30 days with an error, first page", `events?${range}&error_code=policy_denied`],
    ["summary of 30 days of an error that none has", `summary?${range}&error_code=guardrail_unavailable`],
    ["events of 30 days refused by a check that refused none", `events?${range}&denied_by=budget`],
    ...FilterField.literals.map((field) => [`values of the filter ${field}`, `filter-values?field=${field}`] as const),
    ["export of 10,000 rows, CSV", `export.csv?${range}&limit=10000`],
    ["export of 10,000 rows, JSON", `export.json?${range}&limit=10000`],
    [`export of a day, CSV (${Math.round(rows / days)} rows)`, `export.csv?${day}&all=true`]
  ]
  const answered = yield* Questions.ask((path) => gateway.read(`/admin/usage/${path}`), questions, say)
  const usage: Usage = {
    rows,
    made,
    summed,
    sums: yield* store.count("SELECT count(*) FROM usage_rollups"),
    questions: answered,
    memory: { before, peak: Footprint.peakMiB(gateway.child.pid) }
  }
  return usage
})

const batch = 250_000

/** Waits until the gateway has built its indexes. A VACUUM beside them would end in a deadlock. */
const lateIndexesOf = (store: Store) => {
  const names = LateIndexes.names.map((name) => `'${name}'`).join(", ")
  const built = store.count(
    `SELECT count(*) FROM pg_index JOIN pg_class ON oid = indexrelid WHERE indisvalid AND relname IN (${names})`
  )
  return Effect.repeat(Effect.delay(built, "1 second"), { until: (count) => count === LateIndexes.names.length })
}

/** One of the busier ones. */
const keyId = createHash("md5")
  .update("key20")
  .digest("hex")
  .replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, "$1-$2-$3-$4-$5")

/**
 * 200 keys in 20 projects, a few of which make most of the traffic; each asks for two models. Every tenth request goes
 * to a service, every tenth belongs to a task of five of one key, three in a hundred fail. Times are even over the
 * range.
 */
export const rowsOf = (from: number, to: number, start: number, stepMs: number): string => `
  INSERT INTO usage_events (id, created_at, request_id, key_id, project_id, route, model, provider, status, status_code,
    error_code, latency_ms, usage_source, input_tokens, output_tokens, total_tokens, cost_nanos, cost_source, streamed,
    task_id, run_id, trace_id, fallback_count, service_name, http_method, endpoint_path, endpoint_template, team_id,
    first_byte_ms, gateway_ms, subject, end_user, session_id, client)
  SELECT gen_random_uuid(), to_timestamp((${start} + n * ${stepMs}) / 1000.0), 'request-' || n, md5('key' || k)::uuid,
    md5('project' || k % 20)::uuid, CASE WHEN k % 3 = 0 THEN '/v1/messages' ELSE '/v1/chat/completions' END,
    'model-' || (k + (luck < 0.2)::integer) % 8, CASE WHEN n % 10 = 3 THEN 'internal-service' ELSE 'upstream' END,
    CASE WHEN code < 400 THEN 'success' ELSE 'failure' END, code,
    CASE code WHEN 429 THEN 'rate_limit_exceeded' WHEN 403 THEN 'policy_denied' END, 50 + (luck * 3000)::integer,
    'reported', 200 + k, 100 + k, 300 + 2 * k, 1000000 + n % 1000 * 2000, 'price_table', luck < 0.5,
    CASE WHEN n / 5 % 10 = 0 THEN 'task-' || n / 5 END, CASE WHEN n / 5 % 10 = 0 THEN 'run-' || n / 50 END,
    CASE WHEN n % 4 = 0 THEN md5('trace' || n) END, (luck > 0.99)::integer,
    CASE WHEN n % 10 = 3 THEN 'service-' || k % 5 END, CASE WHEN n % 10 = 3 THEN 'POST' END,
    CASE WHEN n % 10 = 3 THEN '/jobs/' || n END, CASE WHEN n % 10 = 3 THEN '/jobs/{id}' END,
    CASE WHEN k % 12 > 0 THEN 'team-' || k % 12 END, CASE WHEN code = 200 THEN 20 + (luck * 1000)::integer END, 1 + n % 3,
    CASE WHEN k % 4 = 0 THEN 'subject-' || k || '-' || n % 3 END, CASE WHEN k % 5 = 4 THEN 'user-' || n % 997 END,
    CASE WHEN k % 5 = 1 THEN 'session-' || k || '-' || n / 2000 END,
    (ARRAY['openai-python', 'claude-code', 'curl', 'openai-node', 'browser'])[1 + k % 5]
  FROM (
    SELECT n, luck, CASE WHEN n / 5 % 10 = 0 THEN (n / 5 % 200)::integer ELSE floor(200 * power(random(), 3))::integer END AS k,
      CASE WHEN luck < 0.015 THEN 429 WHEN luck < 0.02 THEN 403 WHEN luck < 0.03 THEN 500 ELSE 200 END AS code
    FROM (SELECT n, random() AS luck FROM generate_series(${from}::bigint, ${to - 1}) AS n) AS drawn
  ) AS made`

const encodeCursor = Schema.encodeEffect(Cursor)

/** As a client would have it after so many rows. */
const cursorAt = Effect.fnUntraced(function* (store: Store, skipped: number) {
  const row = `FROM usage_events ORDER BY created_at DESC, id DESC OFFSET ${skipped} LIMIT 1`
  const micros = yield* store.count(`SELECT (extract(epoch FROM created_at) * 1000000)::bigint ${row}`)
  const id = yield* store.text(`SELECT id ${row}`)
  return yield* Effect.mapError(encodeCursor({ micros, id }), ({ message }) => new BenchFailed({ message }))
})
