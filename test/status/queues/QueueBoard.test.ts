import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option, Stream } from "effect"
import { TestClock } from "effect/testing"
import * as BrokerMemory from "../../../layers/BrokerMemory.ts"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import * as ControlStore from "../../../src/messaging/control/ControlStore.ts"
import { Broker, type Connection } from "../../../src/services/Broker.ts"
import * as QueueBoard from "../../../src/status/queues/QueueBoard.ts"

/** A broker with empty queues. While `isFrozen`, it does not respond. */
const broker = (isFrozen: () => boolean, connection: Connection) =>
  Layer.effect(
    Broker,
    Effect.map(Broker, (real) =>
      Broker.of({
        ...real,
        connection: Stream.make(connection),
        inspect: () =>
          Effect.suspend(() => (isFrozen() ? Effect.never : Effect.succeed(Option.some({ messages: 0, consumers: 1 }))))
      })
    )
  ).pipe(Layer.provide(BrokerMemory.layerConnection()), Layer.provide(BrokerMemory.layerServer()))

const board = (isFrozen: () => boolean = () => false, connection: Connection = { _tag: "Connected" }) =>
  QueueBoard.layer({ queues: ["named"] }).pipe(
    Layer.provideMerge(ControlStore.layer()),
    Layer.provide(RedisMemory.layer()),
    Layer.provide(broker(isFrozen, connection))
  )

/** The queues with their states, after the board's cache and its time for the broker are over. */
const states = Effect.gen(function* () {
  const { queues } = yield* QueueBoard.QueueBoard
  yield* TestClock.adjust("1 second")
  const views = yield* Effect.forkChild(queues)
  yield* TestClock.adjust("2 seconds")
  return (yield* Fiber.join(views)).map(({ queue, state }) => `${queue}: ${state}`)
})

describe("the board of queues", () => {
  it.effect("calls no queue well while the broker does not respond", () => {
    let isFrozen = false
    return Effect.gen(function* () {
      assert.deepStrictEqual(yield* states, ["named: well"])
      isFrozen = true
      assert.deepStrictEqual(yield* states, ["named: unknown"])
      yield* (yield* QueueBoard.QueueBoard).pause("named", { reason: "maintenance", by: null })
      assert.deepStrictEqual(yield* states, ["named: paused"])
    }).pipe(Effect.provide(board(() => isFrozen)))
  })

  it.effect("tells that the broker takes no messages, and why", () => {
    const states: ReadonlyArray<readonly [Connection, string, RegExp]> = [
      [{ _tag: "Connected" }, "connected", /^$/],
      [{ _tag: "Blocked", reason: "low on disk" }, "blocked", /takes no messages: low on disk/],
      [{ _tag: "Connecting", attempt: 2, failure: "ECONNREFUSED" }, "connecting", /cannot be reached: ECONNREFUSED/],
      [{ _tag: "Closed" }, "closed", /is closed/]
    ]
    return Effect.forEach(states, ([connection, state, detail]) =>
      Effect.gen(function* () {
        const found = yield* (yield* QueueBoard.QueueBoard).broker
        assert.deepStrictEqual([found.state, detail.test(found.detail)], [state, true])
      }).pipe(Effect.provide(board(() => false, connection)))
    )
  })

  it.effect("forgets a queue a week after its last worker, unless it is paused", () =>
    Effect.gen(function* () {
      const { pause, resume } = yield* QueueBoard.QueueBoard
      const store = yield* ControlStore.ControlStore
      for (const queue of ["gone", "held"]) yield* store.announce({ queue, retry_queues: [], dead_letter_queue: null })
      yield* pause("held", { reason: "maintenance", by: "ada" })
      yield* TestClock.adjust("6 days")
      assert.deepStrictEqual(yield* states, ["gone: well", "held: paused", "named: well"])
      yield* TestClock.adjust("1 day")
      assert.deepStrictEqual(yield* states, ["held: paused", "named: well"])
      yield* resume("held")
      assert.deepStrictEqual(yield* states, ["named: well"])
      assert.strictEqual((yield* Effect.flip(resume("gone")))._tag, "UnknownQueue")
    }).pipe(Effect.provide(board()))
  )
})
