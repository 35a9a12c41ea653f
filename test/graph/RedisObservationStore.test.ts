import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import * as RedisMemory from "../../layers/RedisMemory.ts"
import { ObservationStore } from "../../src/graph/observations/ObservationStore.ts"
import * as RedisObservationStore from "../../src/graph/observations/RedisObservationStore.ts"
import { ofMillis } from "../../src/messaging/envelope/Timestamp.ts"
import { encode, of } from "../../src/messaging/observe/Observation.ts"
import { Redis } from "../../src/services/Redis.ts"
import { eventually } from "../Eventually.ts"
import * as TemporaryPrefix from "../TemporaryPrefix.ts"

const acked = (taskId: string | null, second = 0, attempt = 0) =>
  of("TaskMessageAcked", ofMillis(second * 1000), {
    consumer_name: "w",
    queue_name: "q",
    task_id: taskId,
    correlation_id: null,
    retry_attempt: attempt,
    task_type: null
  })

const inMemory = (parameters: RedisObservationStore.Parameters = {}) =>
  RedisObservationStore.layer(parameters).pipe(Layer.provideMerge(RedisMemory.layer({ prefix: "svc:" })))

const sequences = (taskId: string) =>
  Effect.flatMap(ObservationStore, ({ history }) =>
    Effect.map(history(taskId), ({ events }) => events.map(({ sequence }) => sequence))
  )

describe("RedisObservationStore", () => {
  it.effect("keeps what was observed of a task, oldest first, each once", () =>
    Effect.gen(function* () {
      const { history, store } = yield* ObservationStore
      assert.strictEqual(yield* store(acked("t", 2)), "stored")
      assert.strictEqual(yield* store(acked("t", 1)), "stored")
      assert.strictEqual(yield* store(acked("t", 2)), "duplicate")
      assert.strictEqual(yield* store(acked("other", 2)), "stored")
      assert.deepStrictEqual(yield* history("t"), {
        events: [
          { sequence: 1, json: encode(acked("t", 2)) },
          { sequence: 2, json: encode(acked("t", 1)) }
        ],
        oldest: 1
      })
      assert.deepStrictEqual(yield* history("unknown"), { events: [], oldest: 0 })
    }).pipe(Effect.provide(inMemory()))
  )

  it.effect("keeps nothing that belongs to no task", () =>
    Effect.gen(function* () {
      const { store } = yield* ObservationStore
      assert.strictEqual(yield* store(acked(null)), "ignored")
      assert.strictEqual(yield* store(acked(" ")), "ignored")
      const started = of("TaskConsumerStarted", ofMillis(0), { consumer_name: "w", queue_name: "q" })
      assert.strictEqual(yield* store(started), "ignored")
    }).pipe(Effect.provide(inMemory()))
  )

  it.effect("trims the oldest, and tells so", () =>
    Effect.gen(function* () {
      const { history, store } = yield* ObservationStore
      for (const second of [1, 2, 3, 4, 5]) yield* store(acked("t", second))
      assert.deepStrictEqual(yield* sequences("t"), [3, 4, 5])
      assert.strictEqual((yield* history("t")).oldest, 3)
    }).pipe(Effect.provide(inMemory({ history_maxlen: 3 })))
  )

  it.effect("forgets a task some time after the last observation of it, or never", () =>
    Effect.gen(function* () {
      const { store } = yield* ObservationStore
      yield* store(acked("t", 1))
      yield* TestClock.adjust("50 seconds")
      yield* store(acked("t", 2))
      yield* TestClock.adjust("50 seconds")
      assert.deepStrictEqual(yield* sequences("t"), [1, 2])
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* sequences("t"), [])
      for (const ttl_seconds of [null, 0]) {
        const forever = Context.get(yield* Layer.build(inMemory({ ttl_seconds })), ObservationStore)
        yield* forever.store(acked("t", 1))
        yield* TestClock.adjust("400 days")
        assert.lengthOf((yield* forever.history("t")).events, 1)
      }
    }).pipe(Effect.scoped, Effect.provide(inMemory({ ttl_seconds: 60 })))
  )

  it.effect("refuses impossible settings, all at once", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Layer.build(inMemory({ prefix: " ", ttl_seconds: -1, history_maxlen: 0 })))
      assert.deepStrictEqual(
        error.mistakes.map(({ field }) => field),
        ["prefix", "ttl_seconds", "history_maxlen"]
      )
    }).pipe(Effect.scoped)
  )

  it.live("is the sink of workers: what watches a task does not push out what happened to it", () =>
    Effect.gen(function* () {
      const store = yield* ObservationStore
      const sink = yield* RedisObservationStore.makeRedisObservationSink(store)
      sink(acked("t", 1))
      sink(of("SSEKeepaliveSent", ofMillis(0), { task_id: "t" }))
      sink(of("StatusHubStoredEvent", ofMillis(0), { task_id: "t", event_id: null, status: null }))
      sink(acked(null))
      sink(acked("t", 2))
      const kept = yield* eventually(store.history("t"), ({ events }) => events.length === 2)
      assert.deepStrictEqual(
        kept.events.map(({ json }) => json),
        [encode(acked("t", 1)), encode(acked("t", 2))]
      )
    }).pipe(Effect.scoped, Effect.provide(inMemory()))
  )
})

describe.skipIf(TemporaryPrefix.server === null)("RedisObservationStore: its script's Lua and TypeScript", () => {
  it.live("answer the same to any sequence of observations, and leave the same history", () =>
    Effect.gen(function* () {
      const lua = Context.get(yield* Layer.build(TemporaryPrefix.layer), Redis)
      const typescript = Context.get(yield* Layer.build(RedisMemory.layer({ prefix: "svc:" })), Redis)
      let run = 0
      const play = (redis: Redis["Service"], observed: ReadonlyArray<readonly [string, number]>, number: number) =>
        Effect.gen(function* () {
          const key = redis.key(`observed-{${number}}`)
          const said: Array<unknown> = []
          for (const [observation, maxlen] of observed) {
            said.push(yield* redis.run(RedisObservationStore.append, [key], [observation, maxlen, 60]))
            said.push(yield* redis.command("ZRANGEBYSCORE", key, "-inf", "+inf", "WITHSCORES"))
            said.push(Number(yield* redis.command("TTL", key)) > 50)
          }
          return said
        })
      const promise = Effect.runPromiseWith(yield* Effect.context<never>())
      const property = fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom("a", "b", "c", "d", "é", "🚀", ""), fc.integer({ min: 1, max: 4 })), {
          maxLength: 20
        }),
        async (observed) => {
          run++
          assert.deepStrictEqual(
            await promise(play(typescript, observed, run)),
            await promise(play(lua, observed, run))
          )
        }
      )
      yield* Effect.promise(() => fc.assert(property, { numRuns: 60 }))
    }).pipe(Effect.scoped)
  )
})
