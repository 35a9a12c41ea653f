import { randomUUID } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Metric } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import * as RedisMemory from "../../layers/RedisMemory.ts"
import * as StatusRuntime from "../../src/graph/StatusRuntime.ts"
import type { SettingsError } from "../../src/messaging/envelope/Errors.ts"
import { DeadLetterStore } from "../../src/status/dead-letters/DeadLetterStore.ts"
import * as RedisDLQStore from "../../src/status/dead-letters/RedisDLQStore.ts"
import { replay } from "../../src/status/replay/Replay.ts"
import * as ReplayJobs from "../../src/status/replay/ReplayJobs.ts"
import * as ReplayWorker from "../../src/status/replay/ReplayWorker.ts"
import { shared } from "../messaging/SampleTopologies.ts"
import * as RealTime from "../RealTime.ts"
import * as TemporaryPrefix from "../TemporaryPrefix.ts"
import { inMemory, stores } from "./DeadLetterServer.ts"
import { deadLetter } from "./DeadLetters.ts"

const memory = RedisMemory.layer({ prefix: "svc-test:" })

const redises = [
  { name: "in memory", skip: false, redis: memory },
  { name: "on Redis", skip: TemporaryPrefix.server === null, redis: RealTime.layer(TemporaryPrefix.layer) }
]

describe.each(redises)("the pages of dead letters, $name", ({ redis, skip }) => {
  const effect = skip ? it.effect.skip : it.effect

  effect("hold every matching record once, newest first, whatever is indexed between them", () =>
    Effect.gen(function* () {
      const promise = Effect.runPromiseWith(yield* Effect.context<never>())
      const property = fc.asyncProperty(
        fc.array(fc.boolean(), { maxLength: 30 }),
        fc.array(fc.nat(3), { maxLength: 40 }),
        fc.integer({ min: 1, max: 7 }),
        fc.boolean(),
        (before, between, limit, filtered) =>
          Effect.gen(function* () {
            const store = yield* DeadLetterStore
            const add = (id: string, matches: boolean) =>
              store.record(deadLetter(id, { reason: matches ? "handler_error" : "invalid_envelope" }))
            yield* Effect.forEach(before, (matches, n) => add(String(n), matches))
            const pages: Array<string> = []
            let cursor: string | null | undefined
            for (let page = 0; cursor !== null; page++) {
              const filter = filtered ? { reason: "handler_error", queue_name: "tasks.dlq" } : {}
              const found = yield* store.list(filter, { limit, ...(cursor !== undefined && { cursor }) })
              assert.isAtMost(found.items.length, limit)
              assert.isFalse(found.items.length === 0 && found.next_cursor !== null)
              pages.push(...found.items.map(({ dlq_id }) => dlq_id))
              cursor = found.next_cursor
              for (let n = 0; n < (between[page] ?? 0); n++) yield* add(`${page}-${n}`, true)
            }
            const expected = before.flatMap((matches, n) => (matches || !filtered ? [`id-${n}`] : [])).toReversed()
            assert.deepStrictEqual(pages, expected)
          }).pipe(Effect.provide(RedisDLQStore.layer({ prefix: randomUUID() }).pipe(Layer.provide(redis))), promise)
      )
      yield* Effect.promise(() => fc.assert(property, { numRuns: skip ? 1 : 30 }))
    })
  )

  effect("end, also when the record that a cursor names has left the index", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      for (let n = 0; n < 4; n++) yield* store.record(deadLetter(n))
      const first = yield* store.list({}, { limit: 2 })
      for (let n = 4; n < 9; n++) yield* store.record(deadLetter(n))
      assert.deepStrictEqual(yield* store.list({}, { limit: 2, cursor: first.next_cursor ?? "" }), {
        items: [],
        next_cursor: null
      })
      const { evicted_total, indexed_total, records } = yield* store.totals
      assert.deepStrictEqual([records, indexed_total, evicted_total], [4, 9, 5])
      assert.isUndefined(yield* store.get("id-4"))
      assert.deepStrictEqual((yield* store.queues)[0]?.indexed_count, 4)
    }).pipe(Effect.provide(RedisDLQStore.layer({ max_records: 4 }).pipe(Layer.provide(redis))))
  )

  effect("are bounded by the bytes of what is kept, too", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const raw_body_b64 = Buffer.alloc(10_000).toString("base64")
      for (let n = 0; n < 10; n++) yield* store.record(deadLetter(n, { raw_body_b64 }))
      const { bytes, evicted_total, records } = yield* store.totals
      assert.isAtMost(bytes, 50_000)
      assert.deepStrictEqual([records, evicted_total], [3, 7])
    }).pipe(Effect.provide(RedisDLQStore.layer({ max_bytes: 50_000 }).pipe(Layer.provide(redis))))
  )

  effect("hold nothing that is older than the store keeps it, and neither do counts", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      yield* store.record(deadLetter(1))
      yield* TestClock.adjust("40 seconds")
      yield* store.record(deadLetter(2, { queue_name: "other.dlq" }))
      yield* TestClock.adjust("30 seconds")
      const ids = (yield* store.list({}, { limit: 5 })).items.map(({ dlq_id }) => dlq_id)
      assert.deepStrictEqual(ids, ["id-2"])
      assert.isUndefined(yield* store.get("id-1"))
      const claim = { dlqId: "id-1", token: "t", force: true }
      assert.strictEqual((yield* store.claim(claim))._tag, "Absent")
      assert.deepStrictEqual(
        (yield* store.queues).map(({ queue_name }) => queue_name),
        ["other.dlq"]
      )
      const { expired_total, records } = yield* store.totals
      assert.deepStrictEqual([records, expired_total], [1, 1])
    }).pipe(Effect.provide(RedisDLQStore.layer({ ttl_seconds: 60 }).pipe(Layer.provide(redis))))
  )

  effect("that are too old count as expired, also when a newer one needs their place", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      yield* TestClock.adjust("10 seconds")
      for (const id of [1, 2]) yield* store.record(deadLetter(id))
      // the store looks for what is too old once a minute, and has not by then
      yield* TestClock.adjust("61 seconds")
      yield* store.record(deadLetter(3))
      const { evicted_total, expired_total, records } = yield* store.totals
      assert.deepStrictEqual([records, expired_total, evicted_total], [1, 2, 0])
    }).pipe(Effect.provide(RedisDLQStore.layer({ ttl_seconds: 60, max_records: 2 }).pipe(Layer.provide(redis))))
  )

  effect("of a filter that hardly matches go on where the last one stopped", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      // each index is large, and what is in all of them lies at the far end
      yield* store.record(deadLetter("both", { reason: "a", exception_type: "B" }))
      yield* Effect.forEach(
        Array.from({ length: 700 }),
        (_, n) => store.record(deadLetter(n, n % 2 === 0 ? { reason: "a" } : { exception_type: "B" })),
        { concurrency: 64 }
      )
      const { items, next_cursor } = yield* store.list({ reason: "a", exception_type: "B" }, { limit: 10 })
      assert.deepStrictEqual([items.map(({ dlq_id }) => dlq_id), next_cursor], [["id-both"], null])
    }).pipe(Effect.provide(RedisDLQStore.layer().pipe(Layer.provide(redis))))
  )
})

describe("the options of dead letters", () => {
  it.effect("fail their layers by name where they cannot be", () =>
    Effect.gen(function* () {
      const refused = <A, R>(layer: Layer.Layer<A, SettingsError, R>) =>
        Effect.map(Effect.flip(Layer.build(layer)), ({ message }) => message)
      const store = (options: RedisDLQStore.Options) => refused(RedisDLQStore.layer(options))
      assert.match(yield* store({ prefix: "a{b", max_records: 0 }), /prefix[\s\S]*max_records/)
      assert.match(yield* store({ ttl_seconds: -1, replay_lease_seconds: 0 }), /ttl_seconds[\s\S]*replay_lease/)
      const worker = ReplayWorker.layer({ window: 0, perSecond: 0.5, lookEvery: 0 })
      assert.match(yield* refused(worker), /window[\s\S]*perSecond[\s\S]*lookEvery/)
      assert.match(yield* refused(ReplayJobs.layer({ maxIds: 0 })), /maxIds/)
      const lifespan = StatusRuntime.layer({ topology: shared(), dlqStore: { max_records: 0 } })
      assert.match(yield* refused(lifespan), /max_records/)
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(inMemory))))
  )

  it.effect("keep records for ever with a ttl of 0", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      yield* store.record(deadLetter(1))
      yield* TestClock.adjust("1000 days")
      assert.isDefined(yield* store.get("id-1"))
    }).pipe(Effect.provide(RedisDLQStore.layer({ ttl_seconds: 0 }).pipe(Layer.provide(memory))))
  )
})

describe("the metrics of dead letters", () => {
  it.effect("count what is indexed and what becomes of replays", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const count = (name: string, outcome?: string) =>
        Effect.map(Metric.snapshot, (all) =>
          all
            .filter(({ attributes, id }) => id === name && attributes?.["outcome"] === outcome)
            .map(({ state }) => ("count" in state ? Number(state.count) : 0))
            .reduce((sum, n) => sum + n, 0)
        )
      const before = yield* count("svc_dlq_indexed_total")
      const absent = yield* count("svc_dlq_replays_total", "absent")
      yield* store.record(deadLetter(1))
      yield* store.record(deadLetter(1))
      yield* Effect.flip(replay("id-none").pipe(Effect.provide(BrokerMemory.layer())))
      assert.strictEqual((yield* count("svc_dlq_indexed_total")) - before, 1)
      assert.strictEqual((yield* count("svc_dlq_replays_total", "absent")) - absent, 1)
    }).pipe(Effect.provide(RedisDLQStore.layer().pipe(Layer.provide(memory))))
  )
})
