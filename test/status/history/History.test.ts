import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import * as History from "../../../src/status/history/History.ts"
import * as RedisStatusStore from "../../../src/status/store/RedisStatusStore.ts"
import { type HistoryOptions, StatusStore } from "../../../src/status/store/StatusStore.ts"
import { event } from "../Events.ts"

/** What was asked of the store. */
class Asked extends Context.Service<Asked, Array<HistoryOptions | undefined>>()("test/Asked") {}

const recording = Layer.effectContext(
  Effect.gen(function* () {
    const store = yield* StatusStore
    const asked: Array<HistoryOptions | undefined> = []
    return Context.make(Asked, asked).pipe(
      Context.add(StatusStore, {
        ...store,
        history: (taskId, options) => {
          asked.push(options)
          return store.history(taskId, options)
        }
      })
    )
  })
).pipe(Layer.provide(RedisStatusStore.layer()), Layer.provide(RedisMemory.layer({ prefix: "svc-test:" })))

describe("a history of the store", () => {
  layer(Layer.provideMerge(History.layerStore({ maxEvents: 100, maxBytes: 2_000 }), recording))((it) => {
    it.effect("asks it for no more than it answers", () =>
      Effect.gen(function* () {
        const store = yield* StatusStore
        const asked = yield* Asked
        const reader = yield* History.HistoryReader
        for (const id of ["a", "b", "c", "d"]) yield* store.store(event("task", id))
        const read = (query: History.HistoryQuery) =>
          Effect.map(reader.store("task", query), ({ events, truncated }) => [
            events.map((json) => JSON.parse(json).event_id).join(" "),
            truncated,
            asked.pop()
          ])
        const bytes = 2_000
        const all = { events: 100, bytes }
        assert.deepStrictEqual(yield* read({ startOffset: "first" }), ["a b c d", false, { atMost: all }])
        assert.deepStrictEqual(yield* read({ startOffset: "last" }), ["d", false, { limit: 1, atMost: all }])
        const two = { events: 2, bytes }
        assert.deepStrictEqual(yield* read({ startOffset: "first", maxScan: 2 }), ["a b", true, { atMost: two }])
        assert.deepStrictEqual(yield* read({ startOffset: 3, maxScan: 2 }), ["c d", false, { after: 2, atMost: two }])
        assert.deepStrictEqual(yield* read({ startOffset: 9, maxScan: 2 }), ["", false, { after: 8, atMost: two }])
      })
    )

    it.effect("goes on where it was to begin, where the store takes too long", () =>
      Effect.gen(function* () {
        const slow = { ...(yield* StatusStore), history: () => Effect.never }
        const context = yield* Layer.build(Layer.provide(History.layerStore(), Layer.succeed(StatusStore, slow)))
        const { store } = Context.get(context, History.HistoryReader)
        const reading = yield* Effect.forkChild(store("task", { startOffset: 7, maxSeconds: 1 }))
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* Fiber.join(reading), { events: [], truncated: true, nextOffset: 7 })
      })
    )

    it.effect("ends where its events have as many bytes as an answer may", () =>
      Effect.gen(function* () {
        const store = yield* StatusStore
        const reader = yield* History.HistoryReader
        const message = "m".repeat(900)
        for (const id of ["a", "b", "c", "d"]) yield* store.store(event("large", id, { message }))
        const { events, truncated } = yield* reader.store("large", { startOffset: "first" })
        assert.deepStrictEqual([events.length, truncated], [2, true])
      })
    )
  })
})
