import { randomUUID } from "node:crypto"
import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient, SqlError } from "effect/sql"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import { batchSize, writeBatch } from "../../../src/gateway/usage/UsageWriter.ts"
import { Database } from "../../../src/services/Database.ts"
import { Redis, type Reply } from "../../../src/services/Redis.ts"
import { usageQueue } from "../../../src/state/UsageQueue.ts"
import type { UsageRecord } from "../../../src/state/UsageRecord.ts"
import * as UsageRow from "../../../src/state/UsageRow.ts"
import * as Proxy from "../Proxy.ts"

layer(Proxy.database)("UsageWriter", (it) => {
  it.effect("writes each record as it was, and takes it out of the queue", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const queue = yield* emptyQueue
      const key = yield* Proxy.issueKey({}, { project: true })
      const record = recordOf({ key_id: key.id, project_id: key.projectId })
      yield* queue.add(UsageRow.encode(record))
      assert.strictEqual(yield* queue.write, 1)
      assert.strictEqual(yield* queue.length, 0)
      const [row] = yield* sql`SELECT *, created_at AS at FROM usage_events WHERE id = ${record.id}`
      const { created_at, ...rest } = record
      const numbers = Object.fromEntries(
        Object.entries(rest).map(([name, value]) => [
          name,
          bigints.has(name) && typeof value === "number" ? BigInt(value) : value
        ])
      )
      assert.deepInclude(row, { ...numbers, status: "success", at: new Date(created_at) })
      const [used] = yield* sql`SELECT last_used_at FROM api_keys WHERE id = ${key.id}`
      assert.deepStrictEqual(used, { last_used_at: new Date(created_at) })
    })
  )

  it.effect("writes NULL where a record has nothing to say", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const queue = yield* emptyQueue
      const silent = { model: undefined, cost_nanos: undefined, task_id: undefined }
      const record = recordOf(silent)
      yield* queue.add(UsageRow.encode(record))
      yield* queue.write
      const rows = yield* sql`SELECT model, cost_nanos, task_id FROM usage_events WHERE id = ${record.id}`
      assert.deepStrictEqual(rows, [{ model: null, cost_nanos: null, task_id: null }])
    })
  )

  it.effect("keeps a name of an operator's from ending a field or a record", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const queue = yield* emptyQueue
      const record = recordOf({ pricing_rule_name: "a\tb\nc\\N", endpoint_template: "\\t" })
      yield* queue.add(UsageRow.encode(record))
      yield* queue.write
      const rows =
        yield* sql`SELECT pricing_rule_name, endpoint_template, cost_mode FROM usage_events WHERE id = ${record.id}`
      assert.deepStrictEqual(rows, [{ pricing_rule_name: "a b c\\N", endpoint_template: "\\t", cost_mode: "fixed" }])
    })
  )

  it.effect("reads NULL where a record was written before its column was", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const queue = yield* emptyQueue
      const record = recordOf()
      const known = UsageRow.columns.findIndex(([name]) => name === "denial")
      yield* queue.add(UsageRow.encode(record).split("\t").slice(0, known).join("\t"))
      yield* queue.write
      const rows = yield* sql`SELECT tools, denial, guardrail_action_count FROM usage_events WHERE id = ${record.id}`
      assert.deepStrictEqual(rows, [{ tools: true, denial: null, guardrail_action_count: null }])
    })
  )

  it.effect("delivers at least once, and the table takes each record once", () =>
    Effect.gen(function* () {
      const queue = yield* emptyQueue
      const record = recordOf()
      for (const _ of ["once", "twice"]) yield* queue.add(UsageRow.encode(record))
      yield* queue.write
      // a crash behind the commit: the entry is there again
      yield* queue.add(UsageRow.encode(record))
      yield* queue.write
      assert.strictEqual(yield* written([record]), 1)
    })
  )

  it.effect("writes what guardrails did beside their record, each run once, in the order of running", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const queue = yield* emptyQueue
      const run = { guardrail_name: "pii-redact", failure_policy: "fail_closed", latency_ms: 3 } as const
      const record = recordOf({
        guardrail_action_count: 2,
        guardrails: [
          { ...run, mode: "pre_call", action: "modify", reason: null, metadata: { email_count: 1 } },
          { ...run, mode: "post_call", action: "block", reason: "why", metadata: {} }
        ]
      })
      for (const _ of ["once", "twice"]) yield* queue.add(UsageRow.encode(record))
      yield* queue.add(UsageRow.encode(recordOf()))
      assert.strictEqual(yield* queue.write, 3)
      yield* queue.add(UsageRow.encode(record))
      yield* queue.write
      const kept =
        yield* sql`SELECT request_id, key_id, project_id, route, model, provider, guardrail_name, mode, action,
        failure_policy, latency_ms, reason, metadata FROM guardrail_execution_events
        WHERE key_id = ${record.key_id} ORDER BY created_at`
      const { key_id, model, project_id, provider, request_id, route } = record
      const of = { request_id, key_id, project_id, route, model, provider, ...run, latency_ms: 3n }
      assert.deepStrictEqual<unknown>(kept, [
        { ...of, mode: "pre_call", action: "modify", reason: null, metadata: { email_count: 1 } },
        { ...of, mode: "post_call", action: "block", reason: "why", metadata: {} }
      ])
    })
  )

  it.effect("writes the oldest first, a batch at a time, until nothing waits", () =>
    Effect.gen(function* () {
      const queue = yield* emptyQueue
      const records = Array.from({ length: 2 * batchSize + 1 }, () => recordOf())
      yield* Effect.forEach(records, (record) => queue.add(UsageRow.encode(record)))
      assert.deepStrictEqual([yield* queue.write, yield* written(records.slice(0, batchSize))], [batchSize, batchSize])
      assert.deepStrictEqual([yield* queue.write, yield* queue.write, yield* queue.write], [batchSize, 1, 0])
      assert.strictEqual(yield* written(records), records.length)
    })
  )

  it.effect("leaves alone what came after another process took the same records", () =>
    Effect.gen(function* () {
      const queue = yield* emptyQueue
      const [both, later] = [recordOf(), recordOf()]
      yield* queue.add(UsageRow.encode(both))
      const overtaken = queue.writeAfter(queue.write.pipe(Effect.andThen(queue.add(UsageRow.encode(later)))))
      assert.deepStrictEqual([yield* overtaken, yield* queue.length, yield* written([both, later])], [0, 1, 1])
      assert.deepStrictEqual([yield* queue.write, yield* queue.length, yield* written([both, later])], [1, 0, 2])
    })
  )

  it.effect.each([
    ["what is no record", "{"],
    ["a record without an end", recordOf().id],
    ["nothing", ""],
    ["an id that is no UUID", UsageRow.encode(recordOf({ id: "r-1" }))],
    ["a key's id that is no UUID", UsageRow.encode(recordOf({ key_id: "k-1" }))],
    ["a NUL", UsageRow.encode(recordOf({ model: "a\u0000b" }))],
    ["half a pair of surrogates", UsageRow.encode(recordOf({ request_id: "a\ud83d" }))],
    ["a status beyond an integer", UsageRow.encode(recordOf({ status_code: 3_000_000_000 }))],
    ["a time beyond the calendar", UsageRow.encode(recordOf({ created_at: Number.MAX_SAFE_INTEGER }))]
  ] as const)("%s keeps no other record from the table", ([, poison]) =>
    Effect.gen(function* () {
      const queue = yield* emptyQueue
      const [before, behind] = [recordOf(), recordOf()]
      yield* queue.add(UsageRow.encode(before))
      yield* queue.add(poison)
      yield* queue.add(UsageRow.encode(behind))
      assert.strictEqual(yield* queue.write, 3)
      assert.deepStrictEqual([yield* written([before, behind]), yield* queue.length], [2, 0])
    })
  )

  it.effect.each([
    ["is gone", new SqlError.ConnectionError({ cause: new Error("gone") })],
    ["only reads, because another one took over", answered("25006")],
    ["is told to shut down", answered("57P01")],
    ["is not up yet", answered("57P03")],
    ["has no disk left", answered("53100")],
    ["has no session left", answered("53300")],
    ["is not migrated yet", new SqlError.SqlSyntaxError({ cause: stated("42703") })],
    ["does not let it in any more", new SqlError.AuthorizationError({ cause: stated("42501") })]
  ] as const)("keeps what it cannot write while the database %s, and writes it later", ([, reason]) =>
    Effect.gen(function* () {
      const unwilling = new SqlError.SqlError({ reason })
      const database = yield* Database
      const queue = yield* emptyQueue
      const record = recordOf()
      yield* queue.add(UsageRow.encode(record))
      const sql = yield* SqlClient.make({
        acquirer: Effect.fail(unwilling),
        compiler: PgClient.makeCompiler(),
        driver: "none",
        spanAttributes: []
      })
      const down = { ...database, sql }
      assert.strictEqual(yield* Effect.flip(Effect.provideService(queue.write, Database, down)), unwilling)
      assert.strictEqual(yield* queue.length, 1)
      yield* queue.write
      assert.deepStrictEqual([yield* written([record]), yield* queue.length], [1, 0])
    }).pipe(Effect.provide(Reactivity.layer))
  )

  it.effect("says of a record what its status was", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const queue = yield* emptyQueue
      const records = [200, 399, 400, 499, 503].map((status_code) => recordOf({ status_code }))
      yield* Effect.forEach(records, (record) => queue.add(UsageRow.encode(record)))
      yield* queue.write
      const rows = yield* sql<{ status: string }>`SELECT status FROM usage_events WHERE ${sql.in(
        "id",
        records.map(({ id }) => id)
      )} ORDER BY status_code`
      assert.deepStrictEqual(
        rows.map(({ status }) => status),
        ["success", "success", "failure", "failure", "failure"]
      )
    })
  )
})

/** What the driver makes of a SQLSTATE that it does not know. */
function answered(code: string) {
  return new SqlError.UnknownError({ cause: stated(code) })
}
function stated(code: string) {
  return Object.assign(new Error("as PostgreSQL says it"), { code })
}

/** A usage queue of its own, and the writer in front of it. */
const emptyQueue = Effect.gen(function* () {
  const redis = Context.get(yield* Layer.build(Layer.fresh(RedisMemory.layer({ prefix: "svc-test:" }))), Redis)
  const key = redis.key(usageQueue)
  return {
    add: (record: string): Effect.Effect<Reply, unknown> => redis.command("RPUSH", key, record),
    length: redis.command("LLEN", key),
    write: Effect.provideService(writeBatch, Redis, redis),
    /** Writes, and lets `meanwhile` happen before the records leave the queue. */
    writeAfter: (meanwhile: Effect.Effect<unknown, unknown, Database>) =>
      Effect.gen(function* () {
        const first = Effect.provideContext(Effect.orDie(meanwhile), yield* Effect.context<Database>())
        return yield* Effect.provideService(writeBatch, Redis, {
          ...redis,
          run: (script, keys, args) =>
            Effect.andThen(script.name === "take" ? first : Effect.void, redis.run(script, keys, args))
        })
      })
  }
})

const written = (records: ReadonlyArray<UsageRecord>) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    const rows = yield* sql`SELECT id FROM usage_events WHERE ${sql.in(
      "id",
      records.map(({ id }) => id)
    )}`
    return rows.length
  })

const bigints = new Set([
  "latency_ms",
  "upstream_ms",
  "input_tokens",
  "output_tokens",
  "total_tokens",
  "cached_input_tokens",
  "cache_write_tokens",
  "reasoning_tokens",
  "cost_nanos",
  "policy_version",
  "estimated_input_tokens"
])

function recordOf(more: Partial<UsageRecord> = {}): UsageRecord {
  return {
    id: randomUUID(),
    created_at: Proxy.noon,
    request_id: "r-1",
    key_id: randomUUID(),
    project_id: null,
    route: "/v1/chat/completions",
    model: 'née ☃ 🚀 "quoted" \\u0000',
    provider: "upstream",
    status_code: 200,
    error_code: null,
    latency_ms: 12,
    usage_source: "reported",
    input_tokens: 1,
    output_tokens: 2,
    total_tokens: 3,
    cached_input_tokens: 0,
    cache_write_tokens: null,
    reasoning_tokens: null,
    cost_nanos: 9_000_000_000_000_000,
    cost_source: "price_table",
    streamed: true,
    task_id: null,
    run_id: null,
    trace_id: null,
    fallback_count: 0,
    fallback_reason: "http_503",
    upstream_ms: 5,
    service_name: "summary",
    http_method: "POST",
    endpoint_path: "/jobs/7",
    endpoint_template: "/jobs/{id}",
    cost_mode: "fixed",
    pricing_rule_name: "long",
    policy_version: 3,
    tools: true,
    estimated_input_tokens: 40,
    denial: { check: "models", layer: "project" },
    guardrail_action_count: 2,
    request_hash: "q".repeat(22),
    response_hash: "s".repeat(22),
    ...more
  }
}
