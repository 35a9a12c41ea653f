import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as AggregationConsumer from "../../../src/messaging/consume/AggregationConsumer.ts"
import * as AggregationHandler from "../../../src/messaging/consume/AggregationHandler.ts"
import * as Handler from "../../../src/messaging/consume/Handler.ts"
import * as WorkflowConsumer from "../../../src/messaging/consume/WorkflowConsumer.ts"
import * as WorkflowHandler from "../../../src/messaging/consume/WorkflowHandler.ts"
import { TopologyError } from "../../../src/messaging/envelope/Errors.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import { RetryPolicy } from "../../../src/messaging/topology/RetryPolicy.ts"
import {
  RoutedTasksSharedStatusTopology,
  SharedTasksSharedStatusShardedAggregationTopology,
  SharedTasksSharedStatusTopology
} from "../../../src/messaging/topology/TaskTopology.ts"
import { SharedStatusWorkflowTopology } from "../../../src/messaging/topology/WorkflowTopology.ts"
import { Broker } from "../../../src/services/Broker.ts"
import { letters } from "../Letters.ts"
import { sharded, shared, workflow } from "../SampleTopologies.ts"
import { clientOf, named, onBothBrokers, ready } from "./OnBothBrokers.ts"
import { bytes, working } from "./ResizeWorker.ts"

const mistakeOf = (make: () => unknown) => {
  try {
    make()
  } catch (error) {
    if (error instanceof TopologyError) return error.message
    throw error
  }
  return assert.fail("it was taken")
}

describe("errors at configuration", () => {
  it.each([
    [
      "task",
      () => shared({ task_max_priority: 5, task_queue_kwargs: { "x-max-priority": 5 } }),
      "task queue arguments x-max-priority are set in both task_max_priority and task_queue_kwargs"
    ],
    [
      "status",
      () => shared({ status_queue_ttl_ms: 1, status_queue_arguments_overrides: { "x-expires": 1 } }),
      "status queue arguments x-expires are set in both status_queue_ttl_ms and status_queue_arguments_overrides"
    ],
    [
      "aggregation",
      () =>
        sharded({
          aggregation_queue_arguments_overrides: { "x-max-length": 1 },
          aggregation_queue_kwargs: { "x-max-length": 1 }
        }),
      "aggregation queue arguments x-max-length are set in both aggregation_queue_arguments_overrides and aggregation_queue_kwargs"
    ],
    [
      "workflow",
      () => workflow({ workflow_consumer_timeout_ms: 1, workflow_queue_kwargs: { "x-consumer-timeout": 1 } }),
      "workflow queue arguments x-consumer-timeout are set in both workflow_consumer_timeout_ms and workflow_queue_kwargs"
    ]
  ] as const)(
    "the same queue argument key through more than one source for the %s queue family is refused, by name",
    (_, make, message) => {
      assert.include(mistakeOf(make), message)
    }
  )

  it.each([
    ["task_max_priority", (maximum: number) => shared({ task_max_priority: maximum })],
    ["aggregation_max_priority", (maximum: number) => sharded({ aggregation_max_priority: maximum })],
    ["workflow_max_priority", (maximum: number) => workflow({ workflow_max_priority: maximum })]
  ] as const)("priority queue maximum outside 1 to 255 is an invalid configuration: %s", (field, make) => {
    for (const maximum of [0, 256]) {
      assert.include(
        mistakeOf(() => make(maximum)),
        `${field} must be an integer from 1 to 255`
      )
    }
    for (const maximum of [1, 255]) assert.doesNotThrow(() => make(maximum))
  })
})

onBothBrokers("errors", (provided) => {
  it.live("publish to a routed topology without task_type: rejected", () =>
    Effect.gen(function* () {
      const { routed } = yield* named
      const { publishTask } = yield* clientOf(new RoutedTasksSharedStatusTopology(routed))
      for (const task of [{ task_id: "t1" }, { task_id: "t1", task_type: " " }]) {
        assert.deepInclude(yield* Effect.flip(publishTask(task)), { _tag: "InvalidPublish", field: "task_type" })
      }
      yield* ready(routed.tasks_queue, 0)
    }).pipe(provided)
  )

  it.live("top-level priority above the queue's configured maximum priority: client-side failure", () =>
    Effect.gen(function* () {
      const { shared } = yield* named
      const topology = new SharedTasksSharedStatusTopology({ ...shared, task_max_priority: 5 })
      const { publishTask } = yield* clientOf(topology)
      assert.deepInclude(yield* Effect.flip(publishTask({ task_id: "t1", priority: 6 })), {
        _tag: "InvalidPublish",
        reason: "priority_above_maximum"
      })
      yield* publishTask({ task_id: "t2", priority: 5 })
      yield* ready(shared.tasks_queue, 1)
    }).pipe(provided)
  )

  it.live("batch envelope whose tasks have different priorities: rejected", () =>
    Effect.gen(function* () {
      const { shared } = yield* named
      const { publishTasks } = yield* clientOf(new SharedTasksSharedStatusTopology(shared))
      const tasks = [
        { task_id: "t1", priority: 1 },
        { task_id: "t2", priority: 2 }
      ]
      assert.deepInclude(yield* Effect.flip(publishTasks(tasks, { mode: "batch_envelope", batchId: "b" })), {
        _tag: "InvalidPublish",
        reason: "mixed_priorities"
      })
      yield* ready(shared.tasks_queue, 0)
    }).pipe(provided)
  )

  it.live("batch envelope consumed by a consumer without retry_policy: not permitted", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const { client, queue, rejected } = yield* working(Handler.make((task) => Effect.sync(() => seen.push(task))))
      yield* client.publishTasks([{ task_id: "a", task_type: "resize" }], { mode: "batch_envelope", batchId: "b1" })
      yield* ready(rejected, 1)
      const [batch] = yield* letters(rejected)
      assert.strictEqual(Object(batch?.body).batch_id, "b1")
      assert.deepStrictEqual(seen, [])
      yield* ready(queue, 0)
    }).pipe(provided)
  )

  it.live("aggregation publish without meta.parent_task_id: not permitted", () =>
    Effect.gen(function* () {
      const { shards, shared } = yield* named
      const topology = new SharedTasksSharedStatusShardedAggregationTopology({ ...shared, ...shards })
      const { publishAggregationStatus } = yield* clientOf(topology)
      for (const meta of [{}, { parent_task_id: " " }]) {
        const refused = publishAggregationStatus({ task_id: "t1", status: "completed", meta })
        assert.deepInclude(yield* Effect.flip(refused), { _tag: "InvalidPublish", field: "meta.parent_task_id" })
      }
      yield* ready(shared.status_queue, 0)
    }).pipe(provided)
  )

  const unreadable = [
    ["malformed JSON", Buffer.from("{"), "malformed_json", null],
    ["invalid envelope", Buffer.from('{"payload":{}}'), "invalid_envelope", "EnvelopeError"]
  ] as const

  it.live.each(unreadable)("%s on consume by a workflow stage with a retry policy: dead-lettered directly", (row) =>
    Effect.gen(function* () {
      const { workflow } = yield* named
      const client = yield* clientOf(new SharedStatusWorkflowTopology(workflow))
      const queue = workflow.stages[1]?.queue ?? ""
      const handler = WorkflowHandler.make(() => Effect.die("never"))
      const made = WorkflowConsumer.make({ stage: "write", handler, retryPolicy: new RetryPolicy() })
      yield* deadLettered(client, queue, yield* Effect.provideService(made, BrokerClient, client), row)
    }).pipe(provided)
  )

  it.live.each(unreadable)(
    "%s on consume by an aggregation worker with a retry policy: dead-lettered directly",
    (row) =>
      Effect.gen(function* () {
        const { names, shards, shared } = yield* named
        const client = yield* clientOf(new SharedTasksSharedStatusShardedAggregationTopology({ ...shared, ...shards }))
        const queue = names.queue("aggregated")
        const handler = AggregationHandler.make(() => Effect.die("never"))
        const retryPolicy = new RetryPolicy()
        const made = AggregationConsumer.make({ shards: [0], queueName: queue, handler, retryPolicy })
        yield* deadLettered(client, queue, yield* Effect.provideService(made, BrokerClient, client), row)
      }).pipe(provided)
  )

  it.live("manual retry to a task_type with no bound queue: no queue receives the message", () =>
    Effect.gen(function* () {
      const { client, deadLetters, other } = yield* working(
        Handler.make((_, context) => context.manualRetry({ taskType: "nobody" })),
        { retries: 0 }
      )
      yield* ready(deadLetters, 0)
      yield* client.publishTask({ task_id: "t1", task_type: "resize" })
      // but it is not lost
      yield* ready(deadLetters, 1)
      const [dead] = yield* letters(deadLetters)
      assert.deepInclude(dead?.body, { task_id: "t1", task_type: "resize" })
      assert.strictEqual(dead?.properties.headers?.["x-svc-exception-type"], "Unroutable")
      yield* ready(other, 0)
    }).pipe(provided)
  )
})

const deadLettered = Effect.fnUntraced(function* (
  client: BrokerClient["Service"],
  queue: string,
  consumer: { readonly run: Effect.Effect<void>; readonly stop: Effect.Effect<void> },
  [, body, reason, exceptionType]: readonly [string, Buffer, string, string | null]
) {
  const broker = yield* Broker
  yield* Effect.addFinalizer(() =>
    Effect.orDie(broker.remove({ queues: [`${queue}.dlq`, `${queue}.retry.30000ms.quorum`] }))
  )
  yield* Effect.forkScoped(consumer.run)
  yield* Effect.addFinalizer(() => consumer.stop)
  yield* ready(`${queue}.dlq`, 0)
  yield* client.publishRawToQueue(queue, body)
  yield* ready(`${queue}.dlq`, 1)
  const [dead] = yield* bytes(`${queue}.dlq`)
  assert.strictEqual(dead?.body.equals(body), true)
  assert.deepInclude(dead?.headers, {
    "x-svc-retry-attempt": 0,
    "x-svc-source-queue": queue,
    "x-svc-failure-reason": reason,
    "x-svc-exception-type": exceptionType
  })
})
