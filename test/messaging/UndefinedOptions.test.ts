import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import {
  AggregationWorkerRuntime,
  BrokerClient,
  ContractAliasConfig,
  Handler,
  LifecycleStatusConfig,
  RetryPolicy,
  RetryStatusConfig,
  SharedStatusWorkflowTopology,
  SharedTasksSharedStatusShardedAggregationTopology,
  TaskConsumer,
  type WorkflowStage
} from "../../src/messaging/index.ts"
import { atWork, desk, settleDown } from "./AtWork.ts"
import { shared } from "./SampleTopologies.ts"

const plane = { status_exchange: "status", status_queue: "status.queue" }

const stage: WorkflowStage = { name: "write", queue: "write", binding_keys: ["w"], publish_routing_key: "w" }

describe("an option that is undefined", () => {
  it.effect("is an option that was left out, for a client and its consumers", () =>
    Effect.gen(function* () {
      const { inspectQueue, publishTask, publishTasks } = yield* BrokerClient
      const { queue } = yield* atWork(
        TaskConsumer.make({
          handler: Handler.make(() => Effect.void),
          retryPolicy: undefined,
          dlqStore: undefined,
          retryStatuses: undefined,
          lifecycleStatuses: undefined,
          handleWithin: undefined,
          consumeTimeoutSeconds: undefined,
          aliasConfig: undefined,
          observationSink: undefined,
          concurrency: undefined,
          stopWithin: undefined,
          idleRetrySeconds: undefined,
          stalledAfter: undefined,
          consumeArguments: undefined,
          consumerName: undefined
        })
      )
      assert.strictEqual(queue, "tasks.queue")
      yield* publishTask({ task_id: "t1", payload: undefined, meta: undefined }, { headers: undefined })
      yield* publishTasks([{ task_id: "t2" }], { mode: undefined, headers: undefined, concurrency: undefined })
      yield* settleDown
      assert.deepStrictEqual(yield* inspectQueue(queue), Option.some({ messages: 0, consumers: 1 }))
    }).pipe(Effect.scoped, Effect.provide(desk({ topology: shared(), aliasConfig: undefined, publishOnly: undefined })))
  )

  it.effect("keeps the defaults of the aggregation runtime", () =>
    Effect.gen(function* () {
      const topology = new SharedTasksSharedStatusShardedAggregationTopology({
        ...plane,
        tasks_exchange: "tasks",
        tasks_queue: "tasks.queue",
        tasks_routing_key: "tasks",
        routing_strategy: undefined,
        aggregation_queue_template: undefined,
        aggregation_routing_prefix: undefined
      })
      const made = { topology, shardGroups: [[0]], handler: { handle: () => Effect.void } }
      const { queues } = yield* AggregationWorkerRuntime.make({
        ...made,
        stopWithin: undefined,
        consumerName: undefined
      })
      assert.deepStrictEqual(queues, ["aggregation.queue.0"])
    }).pipe(Effect.scoped, Effect.provide(desk({ topology: shared() })))
  )

  it("is one that was left out, for everything that is made of parameters", () => {
    const { parameters: _, ...policy } = new RetryPolicy({
      max_retries: undefined,
      backoff: { factor: undefined, max_delay_ms: undefined, jitter: undefined, steps: undefined }
    })
    const { parameters: __, ...expected } = new RetryPolicy({ backoff: {} })
    assert.deepStrictEqual(policy, expected)
    assert.deepStrictEqual(new RetryStatusConfig({ enabled: undefined }), new RetryStatusConfig())
    assert.deepStrictEqual(new LifecycleStatusConfig({ failed: undefined }), new LifecycleStatusConfig())
    assert.strictEqual(new ContractAliasConfig({ field_aliases: undefined }).fieldName("task_id"), "task_id")
    assert.deepStrictEqual(
      shared({ task_queue_type: undefined, task_single_active_consumer: undefined, task_queue_kwargs: undefined })
        .queues,
      shared().queues
    )
    assert.deepStrictEqual(
      new SharedStatusWorkflowTopology({
        ...plane,
        workflow_exchange: "workflow",
        entry_routes: undefined,
        workflow_queue_type: undefined,
        stages: [{ ...stage, max_retries: undefined, dedup_key_fields: undefined, queue_kwargs: undefined }]
      }).queues,
      new SharedStatusWorkflowTopology({ ...plane, workflow_exchange: "workflow", stages: [stage] }).queues
    )
  })
})
