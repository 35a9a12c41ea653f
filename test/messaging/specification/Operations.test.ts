import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Handler from "../../../src/messaging/consume/Handler.ts"
import type { HandlerContext } from "../../../src/messaging/consume/HandlerContext.ts"
import * as TaskConsumer from "../../../src/messaging/consume/TaskConsumer.ts"
import * as WorkflowConsumer from "../../../src/messaging/consume/WorkflowConsumer.ts"
import * as WorkflowHandler from "../../../src/messaging/consume/WorkflowHandler.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import { ContractAliasConfig } from "../../../src/messaging/topology/Aliases.ts"
import {
  SharedTasksSharedStatusShardedAggregationTopology,
  SharedTasksSharedStatusTopology
} from "../../../src/messaging/topology/TaskTopology.ts"
import { SharedStatusWorkflowTopology } from "../../../src/messaging/topology/WorkflowTopology.ts"
import { Broker } from "../../../src/services/Broker.ts"
import { eventually } from "../../Eventually.ts"
import { letters } from "../Letters.ts"
import { clientOf, named, onBothBrokers, ready } from "./OnBothBrokers.ts"

/**
 * Lets a handler say something of the task `child`, where there are 4 shards; the shard of p0 is 0, which is golden.
 * `inputs`: how much of it the aggregation is to get.
 */
const saying = Effect.fnUntraced(function* (
  inputs: number,
  say: (context: HandlerContext) => Effect.Effect<unknown, unknown>
) {
  const { names, shards, shared } = yield* named
  const client = yield* clientOf(new SharedTasksSharedStatusShardedAggregationTopology({ ...shared, ...shards }))
  const aggregation = yield* client.ensureAggregationQueue([0, 1, 2, 3], names.queue("aggregated"))
  const consumer = yield* TaskConsumer.make({ handler: Handler.make((_, context) => say(context)) }).pipe(
    Effect.provideService(BrokerClient, client)
  )
  yield* Effect.forkScoped(consumer.run)
  yield* Effect.addFinalizer(() => consumer.stop)
  yield* client.publishTask({ task_id: "child", correlation_id: "c1" })
  yield* ready(shared.status_queue, 1)
  yield* ready(aggregation, inputs)
  const [status] = yield* letters(shared.status_queue)
  return { status, input: yield* letters(aggregation) }
})

onBothBrokers("library operations", (provided) => {
  it.live("BrokerClient(topology, alias_config) then initialize(): the topology is there, aliases are understood", () =>
    Effect.gen(function* () {
      const { shared } = yield* named
      const { initialize, inspectQueue, publishTask } = yield* BrokerClient.make({
        topology: new SharedTasksSharedStatusTopology(shared),
        aliasConfig: new ContractAliasConfig({ field_aliases: { task_id: "job" } })
      })
      yield* initialize
      assert.strictEqual((yield* inspectQueue(shared.tasks_queue))._tag, "Some")
      yield* publishTask({ job: "t1", payload: { job: "kept" } }, { aliased: true })
      const [sent] = yield* letters(shared.tasks_queue)
      assert.deepInclude(sent?.body, { task_id: "t1", payload: { job: "kept" } })
      assert.notProperty(sent?.body, "job")
    }).pipe(provided)
  )

  it.live("publish_tasks(items, mode): individual is one message per task, in their order", () =>
    Effect.gen(function* () {
      const { shared } = yield* named
      const { publishTasks } = yield* clientOf(new SharedTasksSharedStatusTopology(shared))
      const ids = ["a", "b", "c"]
      yield* publishTasks(ids.map((task_id) => ({ task_id })))
      yield* ready(shared.tasks_queue, 3)
      const sent = yield* letters(shared.tasks_queue)
      assert.deepStrictEqual(
        sent.map(({ body }) => Object(body).task_id),
        ids
      )
    }).pipe(provided)
  )

  it.live("ensure_aggregation_queue(shards), publish_aggregation_status: to a shard routing key such as agg.0", () =>
    Effect.gen(function* () {
      const { shards, shared } = yield* named
      const { remove } = yield* Broker
      const topology = new SharedTasksSharedStatusShardedAggregationTopology({ ...shared, ...shards })
      const { ensureAggregationQueue, publishAggregationStatus } = yield* clientOf(topology)
      const queue = yield* ensureAggregationQueue([3, 0])
      yield* Effect.addFinalizer(() => Effect.orDie(remove({ queues: [queue] })))
      assert.strictEqual(queue, `${shards.aggregation_queue_name_prefix}.0-3`)
      yield* publishAggregationStatus({ task_id: "child", status: "completed", meta: { parent_task_id: "p0" } })
      yield* ready(queue, 1)
      const [input] = yield* letters(queue)
      assert.deepInclude(input, { exchange: shared.status_exchange, routingKey: "agg.0" })
      assert.deepInclude(Object(input?.body).meta, {
        parent_task_id: "p0",
        aggregation_shard: 0,
        aggregation_role: "aggregation"
      })
    }).pipe(provided)
  )

  it.live("acquire_channel(prefetch): a channel that is given as many deliveries as that", () =>
    Effect.gen(function* () {
      const { shared } = yield* named
      const { acquireChannel, publishTasks } = yield* clientOf(new SharedTasksSharedStatusTopology(shared))
      yield* publishTasks(["a", "b", "c"].map((task_id) => ({ task_id })))
      yield* ready(shared.tasks_queue, 3)
      const channel = yield* acquireChannel({ prefetch: 2 })
      const taken: Array<string> = []
      yield* channel.consume({
        queue: shared.tasks_queue,
        onDelivery: ({ properties }) => {
          taken.push(String(properties.headers?.["task_id"]))
        }
      })
      yield* eventually(
        Effect.sync(() => taken.length),
        (count) => count === 2
      )
      yield* ready(shared.tasks_queue, 1)
      assert.deepStrictEqual(taken, ["a", "b"])
    }).pipe(provided)
  )
})

onBothBrokers("handler context operations", (provided) => {
  it.live("context.publish_status: a status of the current task, which is no input of an aggregation", () =>
    Effect.gen(function* () {
      const { input, status } = yield* saying(0, (context) =>
        context.publishStatus("searching", { message: "p. 3", meta: { parent_task_id: "p0" }, result: { words: 7 } })
      )
      assert.strictEqual(status?.routingKey, "child")
      assert.deepInclude(status?.body, {
        task_id: "child",
        correlation_id: "c1",
        status: "searching",
        message: "p. 3",
        result: { words: 7 }
      })
      assert.deepStrictEqual(input, [])
    }).pipe(provided)
  )

  it.live("context.publish_aggregation_status: routed by meta.parent_task_id, task_id stays the current task", () =>
    Effect.gen(function* () {
      const { input, status } = yield* saying(1, (context) =>
        context.publishAggregationStatus("completed", { meta: { parent_task_id: "p0" } })
      )
      assert.strictEqual(status?.routingKey, "agg.0")
      assert.deepInclude(status?.body, { task_id: "child", status: "completed" })
      assert.deepStrictEqual(
        input.map(({ body }) => body),
        [status?.body]
      )
    }).pipe(provided)
  )

  it.live("context.rabbitmq.publish_status: a status of another task, not routed into aggregation queues", () =>
    Effect.gen(function* () {
      const { input, status } = yield* saying(0, ({ client }) =>
        client.publishStatus({ task_id: "parent", status: "aggregating", meta: { parent_task_id: "p0" } })
      )
      assert.strictEqual(status?.routingKey, "parent")
      assert.deepInclude(status?.body, { task_id: "parent", status: "aggregating" })
      assert.deepStrictEqual(input, [])
    }).pipe(provided)
  )

  it.live("context.publish_to_stage(stage, payload, action, meta, priority): workflow hand-over", () =>
    Effect.gen(function* () {
      const { workflow } = yield* named
      const client = yield* clientOf(new SharedStatusWorkflowTopology(workflow))
      const work = { payload: { page: 3 }, action: "draft", meta: { tenant: "a" }, priority: 4 }
      const stages: Array<string> = []
      const consumer = yield* WorkflowConsumer.make({
        stage: "plan",
        handler: WorkflowHandler.make((_, { publishToStage, stage }) => {
          stages.push(stage)
          return publishToStage("write", work)
        })
      }).pipe(Effect.provideService(BrokerClient, client))
      yield* Effect.forkScoped(consumer.run)
      yield* Effect.addFinalizer(() => consumer.stop)
      yield* client.publishToEntry({ task_id: "t1" }, "again")
      const [, write] = workflow.stages
      yield* ready(write?.queue ?? "", 1)
      const [handed] = yield* letters(write?.queue ?? "")
      assert.strictEqual(handed?.routingKey, "writer.write.in")
      assert.deepInclude(handed?.body, { task_id: "t1", stage: "write", origin_stage: "plan", ...work })
      assert.deepStrictEqual(stages, ["plan"])
    }).pipe(provided)
  )
})
