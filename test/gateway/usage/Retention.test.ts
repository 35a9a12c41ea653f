import { randomUUID } from "node:crypto"
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Fiber, type Layer } from "effect"
import { TestClock } from "effect/testing"
import { sweep } from "../../../src/gateway/usage/Retention.ts"
import { sumFinishedBuckets } from "../../../src/gateway/usage/SeriesSums.ts"
import { advanceMark } from "../../../src/gateway/usage/UsageRollup.ts"
import { Database } from "../../../src/services/Database.ts"
import * as MigratedDatabase from "../../MigratedDatabase.ts"
import * as RealTime from "../../RealTime.ts"
import * as TemporaryDatabase from "../../TemporaryDatabase.ts"

const noon = Date.parse("2026-05-05T12:00:00Z")
const daysAgo = (days: number) => new Date(noon - days * 86_400_000)

const event = Effect.fnUntraced(function* (days: number) {
  const { sql } = yield* Database
  yield* sql`INSERT INTO usage_events (id, created_at, request_id, key_id, route, provider, status, status_code, latency_ms,
    usage_source, cost_source, streamed) VALUES (${randomUUID()}, ${daysAgo(days)}, ${`${days} days`}, ${randomUUID()},
    '/v1/responses', 'upstream', 'success', 200, 1, 'status_only', 'none', false)`
})

const emptied = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`DELETE FROM usage_events`
  yield* sql`DELETE FROM usage_rollups`
  yield* sql`DELETE FROM usage_series`
  yield* sql`UPDATE usage_rolled SET until = 'epoch'`
  yield* TestClock.setTime(noon)
})

const left = Effect.gen(function* () {
  const { sql } = yield* Database
  const rows = yield* sql<{ request_id: string }>`SELECT request_id FROM usage_events ORDER BY created_at`
  return rows.map(({ request_id }) => request_id)
})

const suites = <E>(name: string, database: Layer.Layer<Database, E>) =>
  layer(database)(name, (it) => {
    it.effect("events go when they are older than the days that they are kept, and their sums stay", () =>
      Effect.gen(function* () {
        yield* emptied
        yield* Effect.forEach([40, 31, 29, 1], event)
        yield* advanceMark(noon)
        assert.deepStrictEqual(yield* sweep({ usage: 30 }), { usage_events: 2 })
        assert.deepStrictEqual(yield* left, ["29 days", "1 days"])
        const { sql } = yield* Database
        const [sums] = yield* sql`SELECT sum(request_count)::integer AS n FROM usage_rollups
          WHERE grain = 'day' AND part = 'overview'`
        assert.deepStrictEqual(sums, { n: 4 })
      })
    )

    it.effect("an event that no sum has yet is kept, however old it is", () =>
      Effect.gen(function* () {
        yield* emptied
        yield* Effect.forEach([40, 35], event)
        yield* advanceMark(daysAgo(36).getTime())
        assert.deepStrictEqual(yield* sweep({ usage: 30 }), { usage_events: 1 })
        assert.deepStrictEqual(yield* left, ["35 days"])
      })
    )

    it.effect("sums go by a number of days of their own, in every grain and part", () =>
      Effect.gen(function* () {
        yield* emptied
        yield* Effect.forEach([400, 100], event)
        yield* advanceMark(noon)
        yield* TestClock.withLive(sumFinishedBuckets)
        const { usage_rollups } = yield* sweep({ usageSums: 365 })
        // of one event: two grains of two parts
        assert.strictEqual(usage_rollups, 4)
        const { sql } = yield* Database
        assert.lengthOf(yield* sql`SELECT 1 FROM usage_rollups`, 4)
        const kept = yield* sql`SELECT dimension FROM usage_series WHERE bucket < ${daysAgo(365)}`
        assert.deepStrictEqual(kept, [])
        assert.lengthOf(yield* sql`SELECT 1 FROM usage_series WHERE dimension = 'task_type'`, 2)
      })
    )

    it.effect("executions of guardrails, too; what is not named stays", () =>
      Effect.gen(function* () {
        yield* emptied
        yield* event(400)
        yield* advanceMark(noon)
        const { sql } = yield* Database
        for (const days of [8, 6]) {
          yield* sql`INSERT INTO guardrail_execution_events (id, created_at, request_id, key_id, route, provider,
            guardrail_name, mode, action, failure_policy, latency_ms, metadata) VALUES (${randomUUID()}, ${daysAgo(days)}, 'r',
            ${randomUUID()}, '/v1/responses', 'upstream', 'pii-redact', 'pre_call', 'allow', 'fail_closed', 1, '{}')`
        }
        assert.deepStrictEqual(yield* sweep({ guardrailExecutions: 7 }), { guardrail_execution_events: 1 })
        assert.deepStrictEqual(yield* left, ["400 days"])
      })
    )

    it.effect("many go in batches, with a pause behind each", () =>
      Effect.gen(function* () {
        yield* emptied
        yield* Effect.forEach([50, 49, 48, 47, 46], event)
        yield* advanceMark(noon)
        const sweeping = yield* Effect.forkChild(sweep({ usage: 30 }, 2))
        for (const rest of [["48 days", "47 days", "46 days"], ["46 days"], []]) {
          yield* Effect.repeat(Effect.andThen(Effect.yieldNow, left), { until: (rows) => rows.length === rest.length })
          assert.deepStrictEqual(yield* left, rest)
          yield* TestClock.adjust("100 millis")
        }
        assert.deepStrictEqual(yield* Fiber.join(sweeping), { usage_events: 5 })
      })
    )
  })

suites("Retention (embedded)", MigratedDatabase.embedded)

describe.skipIf(TemporaryDatabase.server === null)("on a server", () => {
  suites("Retention (postgres)", RealTime.layer(MigratedDatabase.of(TemporaryDatabase.layer)))
})
