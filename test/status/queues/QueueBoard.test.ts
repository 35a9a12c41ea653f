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

const empty = { messages: 0, consumers: 1 }

/** A broker whose queues are all the same. While `isFrozen`, it does not respond. */
const broker = (isFrozen: () => boolean, connection: Connection, count = () => empty) =>
  Layer.effect(
    Broker,
    Effect.map(Broker, (real) =>
      Broker.of({
        ...real,
        connection: Stream.make(connection),
        inspect: () => Effect.suspend(() => (isFrozen() ? Effect.never : Effect.succeed(Option.some(count()))))
      })
    )
  ).pipe(Layer.provide(BrokerMemory.layerConnection()), Layer.provide(BrokerMemory.layerServer()))

const board = (
  isFrozen: () => boolean = () => false,
  connection: Connection = { _tag: "Connected" },
  count: () => typeof empty = () => empty
) =>
  QueueBoard.layer({ queues: ["named"] }).pipe(
    Layer.provideMerge(ControlStore.layer()),
    Layer.provide(RedisMemory.layer()),
    Layer.provide(broker(isFrozen, connection, count))
  )

/** A worker that reports one consumer of the queue, with two places. */
const report = (in_work: number) =>
  Effect.flatMap(ControlStore.ControlStore, (store) =>
    store.report({
      worker: "w1",
      host: "h",
      pid: 1,
      version: "1",
      started_at: "1970-01-01T00:00:00.000Z",
      seen_at: "1970-01-01T00:00:00.000Z",
      consumers: [{ name: "named", queue: "named", concurrency: 2, in_work, paused: false, running: [] }]
    })
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

  it.effect("says that a queue is in alarm while the broker takes no messages, also where it does not respond", () => {
    let isFrozen = false
    return Effect.gen(function* () {
      assert.deepStrictEqual(yield* states, ["named: alarm"])
      isFrozen = true
      assert.deepStrictEqual(yield* states, ["named: alarm"])
      yield* (yield* QueueBoard.QueueBoard).pause("named", { reason: "maintenance", by: null })
      assert.deepStrictEqual(yield* states, ["named: paused"])
    }).pipe(Effect.provide(board(() => isFrozen, { _tag: "Blocked", reason: "low on memory" })))
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

  it.effect("calls a queue resuming until its consumer begins again, and not stalled because it was paused", () => {
    let count = { messages: 3, consumers: 0 }
    return Effect.gen(function* () {
      const { pause, resume } = yield* QueueBoard.QueueBoard
      yield* pause("named", { reason: "maintenance", by: null })
      yield* TestClock.adjust("7 minutes")
      yield* report(0)
      yield* resume("named")
      assert.deepStrictEqual(yield* states, ["named: resuming"])
      count = { messages: 3, consumers: 1 }
      assert.deepStrictEqual(yield* states, ["named: well"])
      count = { messages: 3, consumers: 0 }
      yield* TestClock.adjust("5 seconds")
      yield* report(0)
      assert.deepStrictEqual(yield* states, ["named: no consumer"])
      yield* pause("named", { reason: "maintenance", by: null })
      yield* (yield* ControlStore.ControlStore).forget("w1")
      yield* resume("named")
      assert.deepStrictEqual(yield* states, ["named: no consumer"])
      count = { messages: 3, consumers: 1 }
      yield* TestClock.adjust("5 minutes")
      assert.deepStrictEqual(yield* states, ["named: stalled"])
    }).pipe(Effect.provide(board(undefined, undefined, () => count)))
  })

  it.effect("calls a queue growing while all places of its workers are taken and its line becomes longer", () => {
    let count = { messages: 40, consumers: 1 }
    return Effect.gen(function* () {
      yield* TestClock.adjust("1 minute")
      count = { messages: 5, consumers: 1 }
      yield* TestClock.adjust("1 minute")
      yield* report(2)
      assert.deepStrictEqual(yield* states, ["named: well"])
      count = { messages: 7, consumers: 1 }
      yield* report(1)
      assert.deepStrictEqual(yield* states, ["named: well"])
      yield* report(2)
      assert.deepStrictEqual(yield* states, ["named: growing"])
      // A consumer that does not report itself may have places.
      count = { messages: 7, consumers: 2 }
      assert.deepStrictEqual(yield* states, ["named: well"])
    }).pipe(Effect.provide(board(undefined, undefined, () => count)))
  })

  it.effect("counts each message that came once, whether it is ready, in work or done", () => {
    let count = { messages: 0, consumers: 1 }
    const lastHour = Effect.gen(function* () {
      const { queues } = yield* QueueBoard.QueueBoard
      yield* TestClock.adjust("1 second")
      const [view] = yield* queues
      return [view?.last_hour.in, view?.last_hour.out]
    })
    return Effect.gen(function* () {
      const { addDone } = yield* ControlStore.ControlStore
      yield* TestClock.adjust("1 minute")
      count = { messages: 20, consumers: 1 }
      yield* report(0)
      assert.deepStrictEqual(yield* lastHour, [20, 0])
      yield* TestClock.adjust("1 minute")
      // The consumer has taken two, of which nothing is done yet.
      count = { messages: 18, consumers: 1 }
      yield* report(2)
      assert.deepStrictEqual(yield* lastHour, [20, 0])
      yield* TestClock.adjust("44 seconds")
      // They are done after the latest inspection of their minute.
      yield* addDone("named", 20)
      count = { messages: 0, consumers: 1 }
      yield* report(0)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* lastHour, [20, 20])
    }).pipe(Effect.provide(board(undefined, undefined, () => count)))
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
      { minute: 1, done: 3, ready: null, passed: null },
      { minute: 2, done: 4, ready: 0, passed: null },
      { minute: 3, done: 1, ready: 2, passed: null }
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
