import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as Handler from "../../../src/messaging/consume/Handler.ts"
import type { HandlerContext } from "../../../src/messaging/consume/HandlerContext.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import { RetryPolicy } from "../../../src/messaging/topology/RetryPolicy.ts"
import { letters } from "../Letters.ts"
import { sharded } from "../SampleTopologies.ts"
import { drop, onMemory, settleDown, statuses, working } from "../TaskWorker.ts"

/** Runs one task by a handler that is given its context. */
const handling = Effect.fnUntraced(function* (
  handle: (context: HandlerContext) => Effect.Effect<unknown, unknown>,
  task: object = { task_id: "t1", task_type: "resize", service: "images", correlation_id: "c1" },
  headers = {}
) {
  const { observed } = yield* working({
    handler: Handler.make((_task, context) => handle(context)),
    retryPolicy: new RetryPolicy({ max_retries: 0 })
  })
  yield* drop("tasks.queue", JSON.stringify(task), { correlationId: "of the message", headers })
  yield* settleDown
  return observed
})

describe("HandlerContext", () => {
  it.effect("knows the delivery that it is the context of", () =>
    Effect.gen(function* () {
      const seen: Array<HandlerContext> = []
      yield* handling((context) => Effect.sync(() => seen.push(context)), { task_id: "t1", mine: 1 }, { own: "header" })
      const [context] = seen
      assert.deepInclude(context, {
        consumerName: "svc-task-consumer",
        sourceQueueName: "tasks.queue",
        taskId: "t1",
        correlationId: "of the message",
        deliveryTag: 1,
        redelivered: false,
        maxRetries: 0,
        headers: { own: "header" },
        rawPayload: { task_id: "t1", mine: 1 }
      })
      assert.strictEqual(context?.retryAttempt, 0)
      assert.strictEqual(context?.client, yield* BrokerClient)
    }).pipe(onMemory())
  )

  it.effect("batch_id, batch_index and batch_size are set only for batch deliveries", () =>
    Effect.gen(function* () {
      const seen: Array<ReadonlyArray<unknown>> = []
      yield* handling(
        ({ batchId, batchIndex, batchSize }) => Effect.sync(() => seen.push([batchId, batchIndex, batchSize])),
        { task_id: "t1" },
        { batch_id: "b1", batch_index: 0, batch_size: 2 }
      )
      yield* drop("tasks.queue", '{"task_id":"t2"}')
      yield* settleDown
      assert.deepStrictEqual(seen, [
        ["b1", 0, 2],
        [undefined, undefined, undefined]
      ])
    }).pipe(onMemory())
  )

  it.effect("manual_retry_count and its companions come from the headers, and are 0 and absent without them", () =>
    Effect.gen(function* () {
      const seen: Array<ReadonlyArray<unknown>> = []
      yield* handling(
        (context) =>
          Effect.sync(() =>
            seen.push([
              context.manualRetryCount,
              context.manualRetryPreviousTaskType,
              context.manualRetrySourceConsumer,
              context.manualRetryReason
            ])
          ),
        { task_id: "t1" },
        {
          "x-svc-manual-retry-count": 2,
          "x-svc-manual-retry-from-task-type": "rotate",
          "x-svc-manual-retry-source-consumer": "turner",
          "x-svc-manual-retry-reason": "too wide"
        }
      )
      yield* drop("tasks.queue", '{"task_id":"t2"}')
      yield* settleDown
      assert.deepStrictEqual(seen, [
        [2, "rotate", "turner", "too wide"],
        [0, undefined, undefined, undefined]
      ])
    }).pipe(onMemory())
  )

  it.effect("context.publish_status is a status of the current task, whatever task id it is given", () =>
    Effect.gen(function* () {
      yield* handling((context) =>
        Effect.all([
          context.publishStatus("searching", { message: "page 3", meta: { page: 3 }, result: { hits: 0 } }),
          context.publishStatus({ status: "found", task_id: "another", service: "finder", event_id: "e1" })
        ])
      )
      const [first, second] = yield* statuses
      assert.deepInclude(first, {
        task_id: "t1",
        status: "searching",
        message: "page 3",
        meta: { page: 3 },
        result: { hits: 0 },
        correlation_id: "c1",
        service: "images",
        task_type: "resize"
      })
      assert.deepInclude(second, { task_id: "t1", status: "found", service: "finder", event_id: "e1" })
    }).pipe(onMemory())
  )

  it.effect("lineage goes into meta.manual_retry of statuses, where the caller's own keys win", () =>
    Effect.gen(function* () {
      yield* handling(
        (context) => context.publishStatus("searching", { meta: { manual_retry: { reason: "mine" }, page: 1 } }),
        { task_id: "t1" },
        { "x-svc-manual-retry-count": 1, "x-svc-manual-retry-reason": "theirs" }
      )
      assert.deepStrictEqual((yield* statuses)[0].meta, { manual_retry: { count: 1, reason: "mine" }, page: 1 })
    }).pipe(onMemory())
  )

  it.effect("context.publish_aggregation_status goes to the shard of its parent, and stays the current task's", () =>
    Effect.gen(function* () {
      const client = yield* BrokerClient
      yield* client.ensureAggregationQueue([0, 1, 2, 3], "aggregation")
      yield* handling((context) =>
        context.publishAggregationStatus("aggregating", { meta: { parent_task_id: "parent-1" }, result: { n: 1 } })
      )
      const [letter] = yield* letters("aggregation")
      assert.match(letter?.routingKey ?? "", /^agg\.[0-3]$/)
      assert.deepInclude(letter?.body, { task_id: "t1", status: "aggregating", result: { n: 1 } })
      const { meta } = Object(letter?.body)
      assert.deepInclude(meta, { parent_task_id: "parent-1", aggregation_role: "aggregation" })
      assert.deepInclude((yield* statuses)[0], { task_id: "t1", status: "aggregating" })
    }).pipe(onMemory(sharded()))
  )

  it.effect("context.publish_aggregation_status without meta.parent_task_id is not permitted", () =>
    Effect.gen(function* () {
      const errors: Array<object> = []
      yield* handling((context) =>
        Effect.map(Effect.flip(context.publishAggregationStatus("aggregating")), (error) => errors.push(error))
      )
      assert.deepInclude(errors[0], { _tag: "InvalidPublish", reason: "parent_task_id_required" })
    }).pipe(onMemory(sharded()))
  )

  it.effect("context.client.publishStatus is a status of another task, which no aggregation queue gets", () =>
    Effect.gen(function* () {
      const client = yield* BrokerClient
      yield* client.ensureAggregationQueue([0, 1, 2, 3], "aggregation")
      yield* handling(({ client }) =>
        client.publishStatus({ task_id: "parent-1", status: "aggregating", meta: { parent_task_id: "parent-1" } })
      )
      assert.deepInclude((yield* statuses)[0], { task_id: "parent-1", status: "aggregating" })
      assert.deepStrictEqual(yield* letters("aggregation"), [])
    }).pipe(onMemory(sharded()))
  )

  it.effect("the attempt of a retry is told to the handler", () =>
    Effect.gen(function* () {
      const seen: Array<number> = []
      yield* working({
        handler: Handler.make((_task, { maxRetries, retryAttempt }) => {
          seen.push(retryAttempt)
          return retryAttempt === maxRetries ? Effect.void : Effect.fail("again")
        }),
        retryPolicy: new RetryPolicy({ max_retries: 2, delay_ms: 10 })
      })
      yield* drop("tasks.queue", '{"task_id":"t1"}')
      yield* settleDown
      yield* TestClock.adjust("1 second")
      yield* settleDown
      assert.deepStrictEqual(seen, [0, 1, 2])
    }).pipe(onMemory())
  )
})
