import { randomUUID } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import * as AggregationHandler from "../../src/messaging/consume/AggregationHandler.ts"
import * as AggregationWorkerRuntime from "../../src/messaging/consume/AggregationWorkerRuntime.ts"
import * as WorkflowConsumer from "../../src/messaging/consume/WorkflowConsumer.ts"
import * as WorkflowHandler from "../../src/messaging/consume/WorkflowHandler.ts"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import { RetryPolicy } from "../../src/messaging/topology/RetryPolicy.ts"
import {
  RoutedTasksSharedStatusShardedAggregationTopology,
  SharedTasksSharedStatusTopology
} from "../../src/messaging/topology/TaskTopology.ts"
import { declarations, type Topology } from "../../src/messaging/topology/Topology.ts"
import { SharedStatusWorkflowTopology } from "../../src/messaging/topology/WorkflowTopology.ts"
import { Broker } from "../../src/services/Broker.ts"
import { eventually } from "../Eventually.ts"
import * as RunningBroker from "../RunningBroker.ts"
import { letters } from "./Letters.ts"
import { by } from "./SampleTopologies.ts"

const prefix = `svc-test-${randomUUID()}`
const named = (name: string) => `${prefix}.${name}`

const status = { status_exchange: named("status"), status_queue: named("status.queue") }

const desk = (topology: Topology) => Layer.provideMerge(BrokerClient.layer({ topology }), RunningBroker.layer())

/** What a topology declares, and the queues that its workers add, gone with the scope. */
const removed = (topology: Topology, ...more: ReadonlyArray<string>) =>
  Effect.flatMap(Broker, (broker) =>
    Effect.addFinalizer(() => {
      const { exchanges, queues } = declarations(topology)
      const names = (all: ReadonlyArray<{ readonly name: string }>) => all.map(({ name }) => name)
      return Effect.orDie(broker.remove({ queues: [...names(queues), ...more], exchanges: names(exchanges) }))
    })
  )

const atWork = <R>(consumer: { readonly run: Effect.Effect<void, never, R>; readonly stop: Effect.Effect<void> }) =>
  Effect.andThen(
    Effect.forkScoped(consumer.run),
    Effect.addFinalizer(() => consumer.stop)
  )

describe.skipIf(RunningBroker.server === null)("on a RabbitMQ", () => {
  const shared = new SharedTasksSharedStatusTopology({
    ...status,
    tasks_exchange: named("tasks"),
    tasks_queue: named("tasks.queue"),
    tasks_routing_key: "tasks",
    task_max_priority: 9
  })

  it.live("a client declares, publishes, tells an unroutable publish, and names what differs", () =>
    Effect.gen(function* () {
      yield* removed(shared)
      const { initialize, inspectQueue, ping, publishStatus, publishTask, publishTasks } = yield* BrokerClient
      yield* initialize
      yield* publishTask({ task_id: "t1", priority: 3 }, { headers: { tenant: "a" } })
      yield* publishTasks(Array.from({ length: 500 }, (_, n) => ({ task_id: `m${n}`, priority: 1 })))
      yield* publishTasks([{ task_id: "b1" }, { task_id: "b2" }], { mode: "batch_envelope", batchId: "batch" })
      yield* publishStatus({ task_id: "t1", status: "searching" })
      assert.deepStrictEqual(
        Option.map(yield* inspectQueue(shared.tasks.queue), ({ messages }) => messages),
        Option.some(502)
      )
      const [first] = yield* letters(shared.tasks.queue)
      assert.deepInclude(first, { exchange: named("tasks"), routingKey: "tasks" })
      assert.deepInclude(first?.body, { task_id: "t1", priority: 3, spec_version: "1.0" })
      assert.deepInclude(first?.properties, { priority: 3, correlationId: "t1", contentType: "application/json" })
      assert.deepStrictEqual(first?.properties.headers, { task_id: "t1", tenant: "a" })
      yield* ping

      const changed = yield* BrokerClient.make({
        topology: new SharedTasksSharedStatusTopology({
          ...status,
          tasks_exchange: named("tasks"),
          tasks_queue: named("tasks.queue"),
          tasks_routing_key: "tasks",
          tasks_message_ttl_ms: 5_000
        })
      })
      const error = yield* Effect.flip(changed.initialize)
      assert.match(error.message, /queue svc-test-.*tasks\.queue exists and differs: .*(x-message-ttl|x-max-priority)/)

      yield* (yield* Broker).remove({ queues: [shared.tasks.queue] })
      const returned = yield* Effect.flip(publishTask({ task_id: "t2" }))
      assert.deepInclude(returned, { _tag: "Unroutable", routingKey: "tasks" })
    }).pipe(Effect.scoped, Effect.provide(desk(shared)))
  )

  const workflow = new SharedStatusWorkflowTopology({
    ...status,
    workflow_exchange: named("workflow"),
    stages: [
      { name: "plan", queue: named("plan.queue"), ...by("planner.plan.in", "replanner.plan.in") },
      { name: "write", queue: named("write.queue"), ...by("writer.write.in"), retry_delay_ms: 200, max_retries: 1 }
    ],
    entry_routes: [{ name: "start", routing_key: "replanner.plan.in", target_stage: "plan" }]
  })

  it.live("a workflow hands over from stage to stage, and retries by the broker's own clock", () =>
    Effect.gen(function* () {
      const write = named("write.queue")
      yield* removed(workflow, `${write}.retry.200ms.quorum`, `${write}.dlq`)
      const seen: Array<string> = []
      yield* atWork(
        yield* WorkflowConsumer.make({
          stage: "plan",
          concurrency: 10,
          handler: WorkflowHandler.make(({ payload }, { publishToStage }) => publishToStage("write", { payload }))
        })
      )
      yield* atWork(
        yield* WorkflowConsumer.make({
          stage: "write",
          concurrency: 10,
          handler: WorkflowHandler.make(({ origin_stage, payload }, { retryAttempt }) => {
            seen.push(`${payload["n"]} from ${origin_stage}, attempt ${retryAttempt}`)
            return payload["n"] === 0 ? Effect.fail(new Error("never")) : Effect.void
          })
        })
      )
      const { publishToEntry } = yield* BrokerClient
      for (let n = 0; n < 3; n++) yield* publishToEntry({ task_id: `t${n}`, payload: { n } }, "start")
      yield* eventually(
        Effect.sync(() => [...seen].sort()),
        (all) => all.length === 4
      )
      assert.deepStrictEqual(seen.sort(), [
        "0 from plan, attempt 0",
        "0 from plan, attempt 1",
        "1 from plan, attempt 0",
        "2 from plan, attempt 0"
      ])
      const { inspectQueue } = yield* BrokerClient
      const dead = yield* eventually(inspectQueue(`${write}.dlq`), (found) => Option.getOrThrow(found).messages === 1)
      assert.isTrue(Option.isSome(dead))
    }).pipe(Effect.scoped, Effect.provide(desk(workflow)))
  )

  const aggregation = new RoutedTasksSharedStatusShardedAggregationTopology({
    ...status,
    tasks_exchange: named("routed"),
    tasks_queue: named("routed.queue"),
    task_types: ["resize"],
    shard_count: 4,
    aggregation_queue_template: named("aggregation.{shard}"),
    aggregation_queue_name_prefix: named("aggregation.shards")
  })

  it.live("aggregation workers share the shards, and every event reaches one of them", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const runtime = yield* AggregationWorkerRuntime.make({
        topology: aggregation,
        shardGroups: [
          [0, 2],
          [1, 3]
        ],
        concurrency: 10,
        retryPolicy: new RetryPolicy(),
        handler: AggregationHandler.make(({ task_id }, { sourceQueueName }) =>
          Effect.sync(() => seen.push(`${task_id} ${sourceQueueName}`))
        )
      })
      const all = runtime.queues.flatMap((queue) => [queue, `${queue}.retry.30000ms.quorum`, `${queue}.dlq`])
      yield* removed(aggregation, ...all)
      yield* Effect.addFinalizer(() => runtime.stop)
      yield* runtime.start
      const { inspectQueue, publishAggregationStatus } = yield* BrokerClient
      yield* eventually(
        Effect.forEach(runtime.queues, (queue) => inspectQueue(queue)),
        (found) => found.every((queue) => Option.isSome(queue) && queue.value.consumers === 1)
      )
      // golden: the shards of p0 to p3 are 0 2 3 1
      yield* Effect.forEach(
        ["p0", "p1", "p2", "p3"],
        (parent) =>
          publishAggregationStatus({ task_id: `c-${parent}`, status: "completed", meta: { parent_task_id: parent } }),
        { concurrency: "unbounded" }
      )
      yield* eventually(
        Effect.sync(() => seen.length),
        (count) => count === 4
      )
      assert.deepStrictEqual(seen.sort(), [
        `c-p0 ${named("aggregation.shards.0-2")}`,
        `c-p1 ${named("aggregation.shards.0-2")}`,
        `c-p2 ${named("aggregation.shards.1-3")}`,
        `c-p3 ${named("aggregation.shards.1-3")}`
      ])
    }).pipe(Effect.scoped, Effect.provide(desk(aggregation)))
  )
})
