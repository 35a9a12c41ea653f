import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import * as AggregationHandler from "../../../src/messaging/consume/AggregationHandler.ts"
import * as AggregationWorkerRuntime from "../../../src/messaging/consume/AggregationWorkerRuntime.ts"
import type { ConsumerOptions } from "../../../src/messaging/consume/ConsumerOptions.ts"
import * as Handler from "../../../src/messaging/consume/Handler.ts"
import * as TaskConsumer from "../../../src/messaging/consume/TaskConsumer.ts"
import * as WorkflowConsumer from "../../../src/messaging/consume/WorkflowConsumer.ts"
import * as WorkflowHandler from "../../../src/messaging/consume/WorkflowHandler.ts"
import type { DeadLetterRecord } from "../../../src/messaging/failure/DeadLetter.ts"
import * as ExceptionDetails from "../../../src/messaging/failure/ExceptionDetails.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import { RetryPolicy } from "../../../src/messaging/topology/RetryPolicy.ts"
import { RetryStatusConfig } from "../../../src/messaging/topology/StatusSettings.ts"
import { Broker } from "../../../src/services/Broker.ts"
import { atWork, desk, observer, pass, settleDown } from "../AtWork.ts"
import { letters } from "../Letters.ts"
import { logged } from "../Logged.ts"
import { sharded, shared, workflow } from "../SampleTopologies.ts"

const failing = () => Effect.fail(new RangeError("no such page"))

/** Every consumer, at work on a handler that fails, and a message for it. */
const consumers = [
  {
    name: "TaskConsumer",
    topology: shared(),
    queue: "tasks.queue",
    failed: "TaskHandlerFailed",
    retried: ["ConsumerRetryScheduled", "log"],
    dead: ["ConsumerDeadLetterPublished", "log"],
    work: (options: ConsumerOptions) => atWork(TaskConsumer.make({ ...options, handler: Handler.make(failing) })),
    publish: Effect.flatMap(BrokerClient, ({ publishTask }) => publishTask({ task_id: "t1" }))
  },
  {
    name: "WorkflowConsumer",
    topology: workflow(),
    queue: "write.queue",
    failed: "WorkflowStageFailed",
    retried: ["log", "ConsumerRetryScheduled"],
    dead: ["log", "ConsumerDeadLetterPublished"],
    work: (options: ConsumerOptions) =>
      atWork(WorkflowConsumer.make({ ...options, stage: "write", handler: WorkflowHandler.make(failing) })),
    publish: Effect.flatMap(BrokerClient, ({ publishToStage }) => publishToStage({ task_id: "t1" }, "write"))
  },
  {
    name: "AggregationWorkerRuntime",
    topology: sharded(),
    // golden: the shard of parent-1 among 4
    queue: "aggregation.queue.1",
    failed: "AggregationHandlerFailed",
    retried: ["log", "AggregationRetryScheduled"],
    dead: ["log", "AggregationDeadLetterPublished"],
    work: (options: ConsumerOptions) =>
      Effect.gen(function* () {
        const client = yield* BrokerClient
        const handler = AggregationHandler.make(failing)
        const runtime = yield* AggregationWorkerRuntime.make({ ...options, client, shardGroups: [[1]], handler })
        yield* Effect.addFinalizer(() => runtime.stop)
        yield* runtime.start
        yield* settleDown
      }),
    publish: Effect.flatMap(BrokerClient, ({ publishAggregationStatus }) =>
      publishAggregationStatus({ task_id: "t1", status: "completed", meta: { parent_task_id: "parent-1" } })
    )
  }
]

describe.each(consumers)("what a $name tells of an attempt that failed", ({ publish, queue, topology, work }) => {
  const failing = Effect.fnUntraced(function* (options: ConsumerOptions = {}) {
    const records: Array<DeadLetterRecord> = []
    const observed = observer()
    const dlqStore = { record: (record: DeadLetterRecord) => Effect.sync(() => records.push(record)) }
    yield* work({
      retryPolicy: new RetryPolicy({ max_retries: 1 }),
      dlqStore,
      observationSink: observed.sink,
      ...options
    })
    yield* publish
    yield* settleDown
    yield* pass("30 seconds")
    const messages = observed.all().flatMap((seen) => ("exception_message" in seen ? [seen.exception_message] : []))
    return { record: records[0], messages }
  })

  it.effect("is why it failed and what follows, for each attempt", () => {
    const { entries, layer } = logged()
    return Effect.gen(function* () {
      yield* failing()
      const told = entries().filter(({ fields }) => "exception_type" in fields)
      assert.deepStrictEqual(
        told.map(({ level, sentence }) => [level, sentence]),
        [
          [
            "Warn",
            `Task t1 failed on ${queue}, in attempt 1 of 2: RangeError: no such page. The next attempt follows in 30s.`
          ],
          [
            "Error",
            `Task t1 failed on ${queue}, in attempt 2 of 2: RangeError: no such page. It is not retried again and is in the dead-letter queue ${queue}.dlq.`
          ]
        ]
      )
      for (const [index, { fields }] of told.entries()) {
        assert.deepInclude(fields, {
          queue,
          task_id: "t1",
          retry_attempt: index,
          max_retries: 1,
          reason: "handler_error",
          exception_type: "RangeError",
          exception_message: "no such page"
        })
        assert.match(String(fields["exception_stack"]), /no such page[\s\S]*DeadLetterRecording\.test/)
      }
    }).pipe(Effect.scoped, Effect.provide([desk({ topology }), layer]))
  })

  it.effect("is an error where the consumer has no retries", () => {
    const { entries, layer } = logged()
    return Effect.gen(function* () {
      yield* work({})
      yield* publish
      yield* settleDown
      const [told] = entries().filter(({ fields }) => "exception_type" in fields)
      assert.strictEqual(told?.level, "Error")
      assert.strictEqual(
        told?.sentence,
        `Task t1 failed on ${queue}, in attempt 1 of 1: RangeError: no such page. It is rejected and not retried, because its consumer has no retry policy.`
      )
    }).pipe(Effect.scoped, Effect.provide([desk({ topology }), layer]))
  })

  it.effect("stands in the record of its dead letter", () =>
    Effect.gen(function* () {
      const { record } = yield* failing()
      assert.deepInclude(record, { exception_type: "RangeError", exception_message: "no such page" })
      assert.match(record?.exception_stack ?? "", /no such page[\s\S]*DeadLetterRecording\.test/)
    }).pipe(Effect.scoped, Effect.provide(desk({ topology })))
  )

  it.effect("is its type alone where nothing else may be kept, or where what masks it fails", () => {
    const { entries, layer } = logged()
    const throwing: ExceptionDetails.Redact = () => {
      throw new Error("cannot mask")
    }
    // of JavaScript, where the compiler says nothing
    const forgetful: ExceptionDetails.Redact = () => JSON.parse('{"text":7}')
    return Effect.gen(function* () {
      for (const redact of [ExceptionDetails.omitted, throwing, forgetful]) {
        const { messages, record } = yield* failing().pipe(
          Effect.scoped,
          Effect.provide(desk({ topology })),
          Effect.provideService(ExceptionDetails.ExceptionDetails, redact)
        )
        assert.deepInclude(record, { exception_type: "RangeError", exception_message: null, exception_stack: null })
        assert.deepStrictEqual(new Set(messages), new Set([""]))
      }
      assert.include(JSON.stringify(entries()), "RangeError")
      assert.notInclude(JSON.stringify(entries()), "no such page")
    }).pipe(Effect.provide(layer))
  })

  it.effect("is masked as the program asks", () =>
    Effect.gen(function* () {
      const { record } = yield* failing().pipe(
        Effect.provideService(ExceptionDetails.ExceptionDetails, ({ stack, text }, type) => ({
          text: `${type}: ${text.replace("page", "…")}`,
          stack: stack.replaceAll("page", "…")
        }))
      )
      assert.strictEqual(record?.exception_message, "RangeError: no such …")
      assert.notInclude(record?.exception_stack, "page")
    }).pipe(Effect.scoped, Effect.provide(desk({ topology })))
  )
})

describe.each(consumers)("the steps of a $name on a failed delivery", (consumer) => {
  it.effect("come in one order, for a retry and for a dead letter", () => {
    const { dead, failed, publish, queue, retried, topology, work } = consumer
    const steps: Array<string> = []
    const logger = Logger.make(({ message }) => {
      if (String(message).includes("RangeError")) steps.push("log")
    })
    const observed = new Set([failed, ...retried, ...dead])
    return Effect.gen(function* () {
      const broker = yield* Broker
      const watched = Broker.of({
        ...broker,
        publish: (publication) => {
          steps.push(`publish ${publication.exchange || publication.routingKey}`)
          return broker.publish(publication)
        }
      })
      const client = yield* Effect.provideService(BrokerClient.make({ topology }), Broker, watched)
      yield* Effect.provideService(
        work({
          retryPolicy: new RetryPolicy({ max_retries: 1 }),
          retryStatuses: new RetryStatusConfig({ enabled: true }),
          dlqStore: { record: () => Effect.sync(() => steps.push("record")) },
          observationSink: ({ event_type }) => {
            if (observed.has(event_type)) steps.push(event_type)
          }
        }),
        BrokerClient,
        client
      )
      yield* publish
      yield* settleDown
      yield* pass("30 seconds")
      assert.deepStrictEqual(steps, [
        ...[failed, `publish ${queue}.retry.30000ms.quorum`, ...retried, "publish status"],
        ...[failed, `publish ${queue}.dlq`, ...dead, "record", "publish status"]
      ])
    }).pipe(Effect.scoped, Effect.provide([desk({ topology }), Logger.layer([logger])]))
  })
})

describe.each(consumers)("the dlq_store of a $name", ({ publish, queue, topology, work }) => {
  it.effect("is told of a dead letter when it is safe in its queue, and of no retry", () =>
    Effect.gen(function* () {
      const { inspectQueue } = yield* BrokerClient
      const records: Array<DeadLetterRecord> = []
      const dlqStore = {
        record: (record: DeadLetterRecord) =>
          Effect.map(inspectQueue(`${queue}.dlq`), (found) => {
            assert.strictEqual(found._tag === "Some" && found.value.messages, 1)
            records.push(record)
          })
      }
      yield* work({ retryPolicy: new RetryPolicy({ max_retries: 1 }), dlqStore })
      yield* publish
      yield* settleDown
      assert.deepStrictEqual(records, [])
      yield* pass("30 seconds")
      assert.lengthOf(records, 1)
      assert.deepInclude(records[0], {
        queue_name: `${queue}.dlq`,
        source_queue_name: queue,
        retry_queue_name: `${queue}.retry.30000ms.quorum`,
        task_id: "t1",
        correlation_id: "t1",
        reason: "handler_error",
        exception_type: "RangeError",
        retry_attempt: 1,
        max_retries: 1,
        body_encoding: "json",
        state: "dead_lettered"
      })
      const [dead] = yield* letters(`${queue}.dlq`)
      assert.deepStrictEqual(records[0]?.body, dead?.body)
    }).pipe(Effect.scoped, Effect.provide(desk({ topology })))
  )

  it.effect("is told of what could not be read, without a task id", () =>
    Effect.gen(function* () {
      const records: Array<DeadLetterRecord> = []
      const dlqStore = { record: (record: DeadLetterRecord) => Effect.sync(() => records.push(record)) }
      yield* work({ retryPolicy: new RetryPolicy(), dlqStore })
      const { publishRawToQueue } = yield* BrokerClient
      yield* publishRawToQueue(queue, Uint8Array.of(0xff))
      yield* settleDown
      assert.lengthOf(records, 1)
      assert.deepInclude(records[0], {
        task_id: null,
        reason: "malformed_json",
        exception_type: null,
        body: "/w==",
        body_encoding: "base64"
      })
    }).pipe(Effect.scoped, Effect.provide(desk({ topology })))
  )

  it.effect("does not keep the message from being acknowledged when it fails, which is observed", () => {
    const observed = observer()
    return Effect.gen(function* () {
      const dlqStore = { record: () => Effect.fail(new RangeError("full")) }
      yield* work({ retryPolicy: new RetryPolicy({ max_retries: 0 }), dlqStore, observationSink: observed.sink })
      yield* publish
      yield* settleDown
      const [failed] = observed.of("ConsumerDLQRecordPersistFailed")
      assert.deepInclude(failed, {
        task_id: "t1",
        queue_name: `${queue}.dlq`,
        source_queue_name: queue,
        retry_attempt: 0,
        max_retries: 0,
        reason: "handler_error",
        exception_type: "RangeError",
        exception_message: "full"
      })
      const { inspectQueue } = yield* BrokerClient
      const left = yield* inspectQueue(queue)
      assert.strictEqual(left._tag === "Some" && left.value.messages, 0)
      assert.lengthOf(yield* letters(`${queue}.dlq`), 1)
    }).pipe(Effect.scoped, Effect.provide(desk({ topology })))
  })
})
