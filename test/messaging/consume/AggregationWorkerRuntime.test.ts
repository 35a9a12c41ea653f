import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Latch, Layer, Option, Scope } from "effect"
import { TestClock } from "effect/testing"
import * as BrokerMemory from "../../../layers/BrokerMemory.ts"
import * as AggregationHandler from "../../../src/messaging/consume/AggregationHandler.ts"
import * as AggregationWorkerRuntime from "../../../src/messaging/consume/AggregationWorkerRuntime.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import { Broker, type Declarations } from "../../../src/services/Broker.ts"
import { desk, pass, settleDown } from "../AtWork.ts"
import { logged } from "../Logged.ts"
import { sharded, shared } from "../SampleTopologies.ts"

const topology = sharded()
const nothing = AggregationHandler.make(() => Effect.void)

const publish = (parent: string) =>
  Effect.flatMap(BrokerClient, ({ publishAggregationStatus }) =>
    publishAggregationStatus({ task_id: `child of ${parent}`, status: "x", meta: { parent_task_id: parent } })
  )

const look = (queue: string) =>
  Effect.flatMap(Broker, ({ inspect }) => Effect.map(inspect(queue), (found) => Option.getOrThrow(found)))

/** Lets it ask for some dozens of queues, one after the other. */
const looked = Effect.repeat(settleDown, { times: 50 })

describe("AggregationWorkerRuntime", () => {
  it.effect("runs a consumer for each group of shards, and every event reaches one of them", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const { queues, start, stop } = yield* AggregationWorkerRuntime.make({
        topology,
        shardGroups: [[0], [3, 1], [2]],
        handler: AggregationHandler.make(({ meta }, { consumerName }) =>
          Effect.sync(() => seen.push(`${meta["aggregation_shard"]} ${consumerName}`))
        )
      })
      assert.deepStrictEqual(queues, ["aggregation.queue.0", "aggregation.queue.shards.1-3", "aggregation.queue.2"])
      yield* start
      yield* settleDown
      // golden: 0 2 3 1
      for (const parent of ["p0", "p1", "p2", "p3"]) yield* publish(parent)
      yield* settleDown
      assert.deepStrictEqual(seen.sort(), [
        "0 svc-aggregation-worker-0",
        "1 svc-aggregation-worker-1",
        "2 svc-aggregation-worker-2",
        "3 svc-aggregation-worker-1"
      ])
      yield* stop
    }).pipe(Effect.scoped, Effect.provide(desk({ topology })))
  )

  it.effect("aggregates what is published right after it has started, however slow the broker declares", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const broker = yield* Broker
      const slow = { ...broker, declare: (what: Declarations) => Effect.delay(broker.declare(what), "1 second") }
      const publishing = Effect.gen(function* () {
        const { start } = yield* AggregationWorkerRuntime.make({
          topology,
          shardGroups: [[0], [3, 1], [2]],
          handler: AggregationHandler.make(({ meta }) => Effect.sync(() => seen.push(meta["aggregation_shard"])))
        })
        yield* start
        for (const parent of ["p0", "p1", "p2", "p3"]) yield* publish(parent)
      })
      yield* Effect.forkScoped(Effect.provideService(publishing, Broker, slow))
      for (let second = 0; second < 20; second++) {
        yield* settleDown
        yield* TestClock.adjust("1 second")
      }
      assert.deepStrictEqual(seen.sort(), [0, 1, 2, 3])
    }).pipe(Effect.scoped, Effect.provide(desk({ topology })))
  )

  it.effect("names the queues of other shards that nobody works on any more, once, and leaves them alone", () => {
    const log = logged()
    return Effect.gen(function* () {
      const { ensureAggregationQueue } = yield* BrokerClient
      for (const shard of [0, 1, 2, 3]) yield* ensureAggregationQueue([shard])
      yield* publish("p2")
      // of the former deployment, somebody is still there
      const { consume } = yield* Broker
      yield* consume({ queue: "aggregation.queue.2", prefetch: 1, onDelivery: () => {} })
      const { start } = yield* AggregationWorkerRuntime.make({
        topology: sharded({ shard_count: 2 }),
        shardGroups: [[0, 1]],
        handler: nothing
      })
      yield* start
      yield* start
      yield* looked
      assert.deepStrictEqual(log.lines(), [
        "Aggregation queues of an earlier shard configuration have no consumer: aggregation.queue.0 (0 events, and more are coming), " +
          "aggregation.queue.1 (0 events, and more are coming), aggregation.queue.3 (1 event). " +
          "Start workers with the earlier configuration until the queues are empty, then delete the queues."
      ])
      assert.deepStrictEqual(yield* look("aggregation.queue.3"), { messages: 1, consumers: 0 })
    }).pipe(Effect.scoped, Effect.provide(desk({ topology })), Effect.provide(log.layer))
  })

  it.effect("says nothing of queues where there are none of other shards", () => {
    const log = logged()
    return Effect.gen(function* () {
      const { start } = yield* AggregationWorkerRuntime.make({
        topology,
        shardGroups: [[0], [3, 1], [2]],
        handler: nothing
      })
      yield* start
      yield* looked
      assert.deepStrictEqual(log.lines(), [])
    }).pipe(Effect.scoped, Effect.provide(desk({ topology })), Effect.provide(log.layer))
  })

  it.effect("refuses groups that overlap, that are outside the shards, and none at all", () =>
    Effect.gen(function* () {
      const refused = (shardGroups: ReadonlyArray<ReadonlyArray<number>>) =>
        Effect.map(
          Effect.flip(AggregationWorkerRuntime.make({ topology, shardGroups, handler: nothing })),
          ({ message }) => message
        )
      assert.match(
        yield* refused([[0], [0, 1]]),
        /groups 0 and 1 both contain shard 0, whose events would be processed twice/
      )
      assert.match(yield* refused([[0], [4]]), /group 1 contains shard 4: shards range from 0 to 3/)
      assert.match(yield* refused([[0], []]), /group 1 contains no shard/)
      assert.match(yield* refused([]), /contains no group of shards/)
    }).pipe(Effect.scoped, Effect.provide(desk({ topology })))
  )

  it.effect("is refused on topologies without shards", () =>
    Effect.gen(function* () {
      const options = { topology: shared(), shardGroups: [], handler: nothing }
      assert.deepInclude(yield* Effect.flip(AggregationWorkerRuntime.make(options)), { reason: "no_aggregation" })
    }).pipe(Effect.scoped, Effect.provide(desk({ topology })))
  )

  it.effect("starts once, stops, and starts again", () =>
    Effect.gen(function* () {
      const client = yield* BrokerClient
      const { start, stop } = yield* AggregationWorkerRuntime.make({ client, shardGroups: [[1]], handler: nothing })
      yield* Effect.all([start, start], { concurrency: "unbounded" })
      yield* settleDown
      yield* start
      yield* settleDown
      assert.strictEqual((yield* look("aggregation.queue.1")).consumers, 1)
      yield* stop
      assert.strictEqual((yield* look("aggregation.queue.1")).consumers, 0)
      yield* stop
      yield* start
      yield* settleDown
      yield* publish("parent-1")
      yield* settleDown
      assert.deepStrictEqual(yield* look("aggregation.queue.1"), { messages: 0, consumers: 1 })
      yield* stop
    }).pipe(Effect.scoped, Effect.provide(desk({ topology })))
  )

  it.effect("waits five seconds for its handlers when it stops, then interrupts them and gives their events back", () =>
    Effect.gen(function* () {
      const gate = yield* Latch.make()
      const log: Array<string> = []
      const { start, stop } = yield* AggregationWorkerRuntime.make({
        topology,
        // golden: the shards of p0 and p1 are 0 and 2
        shardGroups: [[0], [2]],
        handler: AggregationHandler.make((_, { parentTaskId }) =>
          parentTaskId === "p0"
            ? Effect.andThen(
                Latch.await(gate),
                Effect.sync(() => log.push("ended"))
              )
            : Effect.onInterrupt(Effect.never, () => Effect.sync(() => log.push("interrupted")))
        )
      })
      yield* start
      yield* settleDown
      yield* publish("p0")
      yield* publish("p1")
      yield* settleDown
      const stopping = yield* Effect.forkChild(stop)
      yield* pass("4 seconds")
      yield* Latch.open(gate)
      yield* settleDown
      assert.deepStrictEqual(log, ["ended"])
      yield* pass("1 second")
      yield* Fiber.join(stopping)
      assert.deepStrictEqual(log, ["ended", "interrupted"])
      assert.deepStrictEqual(yield* look("aggregation.queue.0"), { messages: 0, consumers: 0 })
      assert.deepStrictEqual(yield* look("aggregation.queue.2"), { messages: 1, consumers: 0 })
    }).pipe(Effect.scoped, Effect.provide(desk({ topology })))
  )

  it.effect("does not start without a broker, and can be started later", () =>
    Effect.gen(function* () {
      const server = yield* BrokerMemory.BrokerServer
      const { start, stop } = yield* AggregationWorkerRuntime.make({ topology, shardGroups: [[1]], handler: nothing })
      yield* server.cut()
      const starting = yield* Effect.forkChild(Effect.flip(start))
      yield* pass("6 seconds")
      assert.deepInclude(yield* Fiber.join(starting), { _tag: "BrokerError", reason: "unreachable" })
      yield* server.restore
      yield* pass("1 minute")
      yield* start
      yield* settleDown
      assert.strictEqual((yield* look("aggregation.queue.1")).consumers, 1)
      yield* stop
    }).pipe(Effect.scoped, Effect.provide(desk({ topology })))
  )

  it.effect("runs no longer than its layer", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const layer = AggregationWorkerRuntime.layer({ topology, shardGroups: [[1]], handler: nothing })
      yield* Layer.buildWithScope(layer, scope)
      yield* settleDown
      assert.strictEqual((yield* look("aggregation.queue.1")).consumers, 1)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* look("aggregation.queue.1")).consumers, 0)
    }).pipe(Effect.provide(desk({ topology })))
  )
})
