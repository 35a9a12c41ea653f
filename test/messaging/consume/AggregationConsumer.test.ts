import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Schema } from "effect"
import * as AggregationConsumer from "../../../src/messaging/consume/AggregationConsumer.ts"
import * as AggregationHandler from "../../../src/messaging/consume/AggregationHandler.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import { RetryPolicy } from "../../../src/messaging/topology/RetryPolicy.ts"
import { RetryStatusConfig } from "../../../src/messaging/topology/StatusSettings.ts"
import { Broker } from "../../../src/services/Broker.ts"
import { atWork, desk, observer, pass, settleDown } from "../AtWork.ts"
import { letters } from "../Letters.ts"
import { sharded, shared } from "../SampleTopologies.ts"

const nothing = AggregationHandler.make(() => Effect.void)

/** Golden: of 4 shards, the events of parent-1 go to shard 1. */
const child = { task_id: "child", status: "completed", meta: { parent_task_id: "parent-1" } }

const publish = (more: Record<string, unknown> = {}) =>
  Effect.flatMap(BrokerClient, ({ publishAggregationStatus }) => publishAggregationStatus({ ...child, ...more }))

const ready = (queue: string) =>
  Effect.flatMap(Broker, ({ inspect }) => Effect.map(inspect(queue), (found) => Option.getOrThrow(found).messages))

const Told = Schema.Struct({
  task_id: Schema.String,
  status: Schema.String,
  message: Schema.optionalKey(Schema.String),
  meta: Schema.Record(Schema.String, Schema.Unknown)
})

/** Statuses that are there, other than the events themselves. */
const statuses = Effect.map(letters("status.queue"), (all) =>
  all.map(({ body }) => Schema.decodeUnknownSync(Told)(body)).filter(({ status }) => status !== child.status)
)

describe("AggregationConsumer", () => {
  it.effect("works on the events of its shards, and tells what it observes", () => {
    const observed = observer()
    return Effect.gen(function* () {
      const seen: Array<unknown> = []
      const { queue } = yield* atWork(
        AggregationConsumer.make({
          shards: [1, 3],
          handler: AggregationHandler.make(({ meta, status, task_id }, { parentTaskId, taskId }) =>
            Effect.sync(() => seen.push([task_id, status, meta["aggregation_shard"], taskId, parentTaskId]))
          ),
          observationSink: observed.sink
        })
      )
      assert.strictEqual(queue, "aggregation.queue.shards.1-3")
      yield* publish({ correlation_id: "c1" })
      // golden: the shard of p0 is 0
      yield* publish({ meta: { parent_task_id: "p0" } })
      yield* settleDown
      assert.deepStrictEqual(seen, [["child", "completed", 1, "child", "parent-1"]])
      assert.strictEqual(yield* ready(queue), 0)
      const told = {
        consumer_name: "svc-aggregation-consumer",
        queue_name: queue,
        task_id: "child",
        parent_task_id: "parent-1",
        correlation_id: "c1",
        retry_attempt: 0
      }
      assert.deepStrictEqual(observed.of("AggregationMessageReceived"), [
        { ...told, delivery_tag: 1, redelivered: false }
      ])
      assert.deepStrictEqual(observed.of("AggregationMessageAcked"), [told])
    }).pipe(Effect.scoped, Effect.provide(desk({ topology: sharded() })))
  })

  it.effect("works for as long as its layer is there", () =>
    Effect.gen(function* () {
      const queue = "aggregation.queue.1"
      const seen: Array<string> = []
      yield* Effect.gen(function* () {
        yield* settleDown
        yield* publish()
        yield* settleDown
      }).pipe(
        Effect.provide(
          AggregationConsumer.layer({
            shards: [1],
            handler: AggregationHandler.make(({ task_id }) => Effect.sync(() => seen.push(task_id)))
          })
        )
      )
      yield* publish()
      assert.deepStrictEqual(seen, ["child"])
      assert.strictEqual(yield* ready(queue), 1)
    }).pipe(Effect.scoped, Effect.provide(desk({ topology: sharded() })))
  )

  it.effect("is refused for shards that there are not, and on topologies without shards", () =>
    Effect.gen(function* () {
      const outside = yield* Effect.flip(AggregationConsumer.make({ shards: [4], handler: nothing }))
      assert.deepInclude(outside, { reason: "shard" })
      const plain = yield* BrokerClient.make({ topology: shared() })
      const other = yield* AggregationConsumer.make({ shards: [0], handler: nothing }).pipe(
        Effect.provideService(BrokerClient, plain),
        Effect.flip
      )
      assert.deepInclude(other, { reason: "no_aggregation" })
      const settings = yield* Effect.flip(AggregationConsumer.make({ shards: [0], handler: nothing, concurrency: 0 }))
      assert.match(settings.message, /concurrency must be an integer from 1 to 65535/)
    }).pipe(Effect.provide(desk({ topology: sharded() })))
  )

  describe("the context", () => {
    it.effect("publishes statuses of the child, and of the parent by the client, beside the aggregation", () =>
      Effect.gen(function* () {
        const { queue } = yield* atWork(
          AggregationConsumer.make({
            shards: [1],
            handler: AggregationHandler.make((_, context) =>
              Effect.andThen(
                context.publishStatus("aggregation-processed", { message: "counted", meta: { n: 1 } }),
                context.client.publishStatus({ task_id: "parent-1", status: "aggregation-complete" })
              )
            )
          })
        )
        yield* publish({ service: "images", task_type: "resize" })
        yield* settleDown
        assert.deepStrictEqual(yield* statuses, [
          { task_id: "child", status: "aggregation-processed", message: "counted", meta: { n: 1 } },
          { task_id: "parent-1", status: "aggregation-complete", meta: {} }
        ])
        assert.strictEqual(yield* ready(queue), 0)
      }).pipe(Effect.scoped, Effect.provide(desk({ topology: sharded() })))
    )

    it.effect("feeds the same shard by publishAggregationStatus, as its own task", () =>
      Effect.gen(function* () {
        const seen: Array<string> = []
        yield* atWork(
          AggregationConsumer.make({
            shards: [1],
            handler: AggregationHandler.make(({ status, task_id }, context) => {
              seen.push(`${task_id} ${status}`)
              if (status === "aggregating") return Effect.void
              return context.publishAggregationStatus("aggregating", { meta: { parent_task_id: "parent-1" } })
            })
          })
        )
        yield* publish()
        yield* settleDown
        assert.deepStrictEqual(seen, ["child completed", "child aggregating"])
      }).pipe(Effect.scoped, Effect.provide(desk({ topology: sharded() })))
    )

    it.effect("knows the lineage of a hand-over from the event's meta, and passes it on", () =>
      Effect.gen(function* () {
        const seen: Array<unknown> = []
        yield* atWork(
          AggregationConsumer.make({
            shards: [1],
            handler: AggregationHandler.make((_, context) => {
              seen.push([context.manualRetryCount, context.manualRetryReason, context.maxRetries])
              return context.publishStatus("aggregating")
            })
          })
        )
        yield* publish({ meta: { parent_task_id: "parent-1", manual_retry: { count: "2", reason: "too large" } } })
        yield* settleDown
        assert.deepStrictEqual(seen, [[2, "too large", null]])
        assert.deepStrictEqual((yield* statuses)[0]?.meta, { manual_retry: { count: 2, reason: "too large" } })
      }).pipe(Effect.scoped, Effect.provide(desk({ topology: sharded() })))
    )
  })

  it.effect(
    "retries a failed event after the delay, dead-letters it at last, and says so with the event's meta",
    () => {
      const observed = observer()
      return Effect.gen(function* () {
        const attempts: Array<number> = []
        const { queue } = yield* atWork(
          AggregationConsumer.make({
            shards: [1],
            handler: AggregationHandler.make((_, { retryAttempt }) => {
              attempts.push(retryAttempt)
              return Effect.fail(new Error("no sum"))
            }),
            retryPolicy: new RetryPolicy({ max_retries: 1 }),
            retryStatuses: new RetryStatusConfig({ enabled: true }),
            observationSink: observed.sink
          })
        )
        yield* publish()
        yield* pass("30 seconds")
        yield* pass("1 minute")
        assert.deepStrictEqual(attempts, [0, 1])
        assert.strictEqual(yield* ready(queue), 0)
        const meta = {
          parent_task_id: "parent-1",
          aggregation_shard: 1,
          aggregation_role: "aggregation",
          retry_attempt: 1,
          max_retries: 1
        }
        assert.deepStrictEqual(yield* statuses, [
          { task_id: "child", status: "retrying", message: "Retry 1/1 is scheduled: no sum", meta },
          { task_id: "child", status: "failed", message: "no sum", meta }
        ])
        const [dead] = yield* letters("aggregation.queue.1.dlq")
        assert.deepInclude(dead?.properties.headers, {
          task_id: "child",
          "x-svc-retry-attempt": 1,
          "x-svc-source-queue": "aggregation.queue.1",
          "x-svc-failure-reason": "handler_error",
          "x-svc-exception-type": "Error"
        })
        const round = ["AggregationMessageReceived", "AggregationHandlerFailed"]
        assert.deepStrictEqual(observed.types(), [
          ...[...round, "AggregationRetryScheduled"],
          ...[...round, "AggregationDeadLetterPublished"]
        ])
        assert.deepStrictEqual(observed.of("AggregationRetryScheduled"), [
          {
            consumer_name: "svc-aggregation-consumer",
            task_id: "child",
            parent_task_id: "parent-1",
            queue_name: "aggregation.queue.1.retry.30000ms.quorum",
            source_queue_name: "aggregation.queue.1",
            correlation_id: "child",
            retry_attempt: 1,
            max_retries: 1,
            reason: "handler_error"
          }
        ])
        assert.deepInclude(observed.of("AggregationHandlerFailed")[0], {
          exception_type: "Error",
          exception_message: "no sum",
          requeue: false
        })
      }).pipe(Effect.scoped, Effect.provide(desk({ topology: sharded() })))
    }
  )

  it.effect("keeps the numbers that JavaScript does not have, which its handler sees as ordinary ones", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const { queue } = yield* atWork(
        AggregationConsumer.make({
          shards: [1],
          handler: AggregationHandler.make(({ meta }, { parentTaskId }) => {
            seen.push([meta["order"], parentTaskId])
            return Effect.fail("no")
          }),
          retryPolicy: new RetryPolicy({ max_retries: 0 }),
          retryStatuses: new RetryStatusConfig({ enabled: true })
        })
      )
      const meta = '"parent_task_id":12345678901234567890,"order":9007199254740993'
      const { publishRawToQueue } = yield* BrokerClient
      yield* publishRawToQueue(queue, Buffer.from(`{"task_id":"child","status":"completed","meta":{${meta}}}`))
      yield* settleDown
      assert.deepStrictEqual(seen, [[9007199254740992, "12345678901234567890"]])
      const { get } = yield* (yield* Broker).channel({ prefetch: 1 })
      assert.include(Buffer.from(Option.getOrThrow(yield* get("status.queue")).content).toString(), meta)
    }).pipe(Effect.scoped, Effect.provide(desk({ topology: sharded() })))
  )

  it.effect("dead-letters what it cannot read, and tells no status of it", () => {
    const observed = observer()
    return Effect.gen(function* () {
      const { queue } = yield* atWork(
        AggregationConsumer.make({
          shards: [1],
          handler: nothing,
          retryPolicy: new RetryPolicy(),
          retryStatuses: new RetryStatusConfig({ enabled: true }),
          observationSink: observed.sink
        })
      )
      const { publishRawToQueue } = yield* BrokerClient
      for (const bytes of ["{", '{"task_id":"t1"}']) yield* publishRawToQueue(queue, Buffer.from(bytes))
      yield* settleDown
      assert.deepStrictEqual(
        observed.of("AggregationDeadLetterPublished").map((fields) => "reason" in fields && fields.reason),
        ["malformed_json", "invalid_envelope"]
      )
      assert.strictEqual(yield* ready(`${queue}.dlq`), 2)
      assert.deepStrictEqual(yield* statuses, [])
    }).pipe(Effect.scoped, Effect.provide(desk({ topology: sharded() })))
  })

  it.effect("rejects what fails without a retry policy", () =>
    Effect.gen(function* () {
      const { queue } = yield* atWork(
        AggregationConsumer.make({ shards: [1], handler: AggregationHandler.make(() => Effect.fail("x")) })
      )
      yield* publish()
      yield* settleDown
      assert.strictEqual(yield* ready(queue), 0)
    }).pipe(Effect.scoped, Effect.provide(desk({ topology: sharded() })))
  )
})
