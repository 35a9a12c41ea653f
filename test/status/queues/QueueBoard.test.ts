import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option, Stream } from "effect"
import { TestClock } from "effect/testing"
import * as BrokerMemory from "../../../layers/BrokerMemory.ts"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import * as ControlStore from "../../../src/messaging/control/ControlStore.ts"
import { RoutedTasksSharedStatusShardedAggregationTopology } from "../../../src/messaging/topology/TaskTopology.ts"
import { Broker, type Connection } from "../../../src/services/Broker.ts"
import * as QueueBoard from "../../../src/status/queues/QueueBoard.ts"
import * as QueueState from "../../../src/status/queues/QueueState.ts"
import * as TopologyMap from "../../../src/status/queues/TopologyMap.ts"

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

const sharded = new RoutedTasksSharedStatusShardedAggregationTopology({
  tasks_exchange: "tasks",
  tasks_queue: "reads",
  task_types: ["read"],
  status_exchange: "status",
  status_queue: "statuses",
  shard_count: 3,
  aggregation_queue_template: "books.{shard}",
  aggregation_queue_name_prefix: "several",
  prefetch_count: 1
})

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

describe("the sums of an hour", () => {
  it("count what had come before the first inspection, so that an empty queue has no more out than in", () => {
    const rates = QueueState.ratesOf([
      { minute: 1, done: 3, ready: null },
      { minute: 2, done: 4, ready: 0 },
      { minute: 3, done: 1, ready: 2 }
    ])
    assert.deepStrictEqual(
      rates.map((one) => one.in),
      [null, null, 3]
    )
    assert.strictEqual(QueueState.arrivedIn(rates), 10)
    assert.strictEqual(QueueState.arrivedIn([]), 0)
    assert.strictEqual(QueueState.arrivedIn([{ minute: 1, in: null, out: 1_000, ready: null }]), 1_000)
  })
})

describe("the map of the topology", () => {
  it.effect("has the aggregation queues that workers announce", () =>
    Effect.gen(function* () {
      const { announce } = yield* ControlStore.ControlStore
      yield* Effect.forEach(["books.1", "several.0-2", "another"], (queue) =>
        announce({ queue, retry_queues: [], dead_letter_queue: null })
      )
      const { bindings, queues } = yield* (yield* TopologyMap.TopologyMap).view
      assert.deepStrictEqual(queues.map(({ name }) => name).toSorted(), ["books.1", "reads", "several.0-2", "statuses"])
      assert.deepStrictEqual(
        bindings
          .flatMap(({ queue, routing_key: key }) => (key.startsWith("agg.") ? [`${key} ${queue}`] : []))
          .toSorted(),
        ["agg.0 several.0-2", "agg.1 books.1", "agg.2 several.0-2"]
      )
    }).pipe(
      Effect.provide(
        TopologyMap.layer([sharded]).pipe(
          Layer.provideMerge(ControlStore.layer()),
          Layer.provide(RedisMemory.layer()),
          Layer.provide(broker(() => false, { _tag: "Connected" }))
        )
      )
    )
  )
})
