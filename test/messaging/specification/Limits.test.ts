import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import * as AggregationHandler from "../../../src/messaging/consume/AggregationHandler.ts"
import * as AggregationWorkerRuntime from "../../../src/messaging/consume/AggregationWorkerRuntime.ts"
import * as Handler from "../../../src/messaging/consume/Handler.ts"
import * as TaskConsumer from "../../../src/messaging/consume/TaskConsumer.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import {
  SharedTasksSharedStatusShardedAggregationTopology,
  SharedTasksSharedStatusTopology
} from "../../../src/messaging/topology/TaskTopology.ts"
import { Broker } from "../../../src/services/Broker.ts"
import { eventually } from "../../Eventually.ts"
import { letters } from "../Letters.ts"
import { clientOf, named, onBothBrokers, ready } from "./OnBothBrokers.ts"

onBothBrokers("limits", (provided) => {
  it.live.each([[1], [255]] as const)("priority queue maximum, 1 to 255: the broker takes %d", ([maximum]) =>
    Effect.gen(function* () {
      const { shared } = yield* named
      const topology = new SharedTasksSharedStatusTopology({ ...shared, task_max_priority: maximum })
      const { publishTask } = yield* clientOf(topology)
      yield* publishTask({ task_id: "low", priority: 0 })
      yield* publishTask({ task_id: "high", priority: maximum })
      yield* ready(shared.tasks_queue, 2)
      const waiting = yield* letters(shared.tasks_queue)
      assert.deepStrictEqual(
        waiting.map(({ body, properties }) => [Object(body).task_id, properties.priority]),
        [
          ["high", maximum],
          ["low", 0]
        ]
      )
    }).pipe(provided)
  )

  it.live("message priority: one value per delivery; a batch envelope has the one that its tasks share", () =>
    Effect.gen(function* () {
      const { shared } = yield* named
      const topology = new SharedTasksSharedStatusTopology({ ...shared, task_max_priority: 9 })
      const { publishTasks } = yield* clientOf(topology)
      const tasks = ["a", "b"].map((task_id) => ({ task_id, priority: 7 }))
      yield* publishTasks(tasks, { mode: "batch_envelope", batchId: "batch" })
      yield* ready(shared.tasks_queue, 1)
      const [batch] = yield* letters(shared.tasks_queue)
      assert.strictEqual(batch?.properties.priority, 7)
      assert.lengthOf(Object(batch?.body).tasks, 2)
    }).pipe(provided)
  )

  it.live.each([[0.05], [null]] as const)(
    "consume_timeout_seconds %j: a message that comes long after it is handled, and the consumer stops",
    ([consumeTimeoutSeconds]) =>
      Effect.gen(function* () {
        const { shared } = yield* named
        const client = yield* clientOf(new SharedTasksSharedStatusTopology(shared))
        const broker = yield* Broker
        const seen: Array<string> = []
        const handler = Handler.make(({ task_id }) => Effect.sync(() => seen.push(task_id)))
        const consumer = yield* TaskConsumer.make({ handler, consumeTimeoutSeconds }).pipe(
          Effect.provideService(BrokerClient, client)
        )
        const running = yield* Effect.forkScoped(consumer.run)
        yield* eventually(
          broker.inspect(shared.tasks_queue),
          (found) => found._tag === "Some" && found.value.consumers === 1
        )
        yield* Effect.sleep("300 millis")
        yield* client.publishTask({ task_id: "late" })
        yield* eventually(
          Effect.sync(() => seen.length),
          (count) => count === 1
        )
        yield* consumer.stop
        yield* Fiber.join(running)
        yield* client.publishTask({ task_id: "too late" })
        yield* ready(shared.tasks_queue, 1)
        assert.deepStrictEqual(seen, ["late"])
      }).pipe(provided)
  )

  it.live("aggregation runtime stop: a consumer that does not exit within the stop timeout is interrupted", () =>
    Effect.gen(function* () {
      const { shards, shared } = yield* named
      const broker = yield* Broker
      const client = yield* clientOf(new SharedTasksSharedStatusShardedAggregationTopology({ ...shared, ...shards }))
      const told: Array<string> = []
      const runtime = yield* AggregationWorkerRuntime.make({
        client,
        shardGroups: [[0, 1, 2, 3]],
        stopWithin: "100 millis",
        handler: AggregationHandler.make(({ task_id }) =>
          Effect.sync(() => told.push(`${task_id} hangs`)).pipe(
            Effect.andThen(Effect.never),
            Effect.onInterrupt(() => Effect.sync(() => told.push(`${task_id} is interrupted`)))
          )
        )
      })
      const [queue = ""] = runtime.queues
      yield* Effect.addFinalizer(() => Effect.orDie(broker.remove({ queues: [queue] })))
      yield* runtime.start
      yield* eventually(broker.inspect(queue), (found) => found._tag === "Some" && found.value.consumers === 1)
      yield* client.publishAggregationStatus({ task_id: "t1", status: "completed", meta: { parent_task_id: "p" } })
      yield* eventually(
        Effect.sync(() => told.length),
        (count) => count === 1
      )
      yield* runtime.stop
      assert.deepStrictEqual(told, ["t1 hangs", "t1 is interrupted"])
      // nothing is lost
      yield* ready(queue, 1)
    }).pipe(provided)
  )

  it.live.each([
    ["only when the destination queue was declared with x-max-priority", { task_max_priority: 9 }, ["5", "1", "0"]],
    ["and not otherwise", {}, ["0", "1", "5"]]
  ] as const)("priority scheduling applies %s", ([, given, order]) =>
    Effect.gen(function* () {
      const { shared } = yield* named
      const { publishTask } = yield* clientOf(new SharedTasksSharedStatusTopology({ ...shared, ...given }))
      for (const priority of [0, 1, 5]) yield* publishTask({ task_id: `${priority}`, priority })
      yield* ready(shared.tasks_queue, 3)
      const waiting = yield* letters(shared.tasks_queue)
      assert.deepStrictEqual(
        waiting.map(({ body }) => Object(body).task_id),
        [...order]
      )
    }).pipe(provided)
  )
})
