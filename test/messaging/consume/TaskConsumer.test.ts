import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Latch, Option } from "effect"
import { TestClock } from "effect/testing"
import * as BrokerMemory from "../../../layers/BrokerMemory.ts"
import * as Handler from "../../../src/messaging/consume/Handler.ts"
import type { HandlerContext } from "../../../src/messaging/consume/HandlerContext.ts"
import * as TaskConsumer from "../../../src/messaging/consume/TaskConsumer.ts"
import type { TaskEnvelope } from "../../../src/messaging/envelope/TaskEnvelope.ts"
import type { DeadLetterRecord } from "../../../src/messaging/failure/DeadLetter.ts"
import * as ObservationSink from "../../../src/messaging/observe/ObservationSink.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import { ContractAliasConfig } from "../../../src/messaging/topology/Aliases.ts"
import { RetryPolicy } from "../../../src/messaging/topology/RetryPolicy.ts"
import { LifecycleStatusConfig, RetryStatusConfig } from "../../../src/messaging/topology/StatusSettings.ts"
import { Broker } from "../../../src/services/Broker.ts"
import { letters } from "../Letters.ts"
import { logged } from "../Logged.ts"
import { routed, shared, workflow } from "../SampleTopologies.ts"
import { drop, onMemory, settleDown, statuses, working } from "../TaskWorker.ts"

const queue = "tasks.queue"
const deadLetters = "tasks.queue.dlq"

const publish = (task: Parameters<BrokerClient["Service"]["publishTask"]>[0]) =>
  Effect.flatMap(BrokerClient, (client) => client.publishTask(task))

const messagesIn = (name: string) =>
  Effect.flatMap(Broker, ({ inspect }) =>
    Effect.map(Effect.orDie(inspect(name)), (found) => Option.getOrUndefined(found)?.messages)
  )

const only = <A>(all: ReadonlyArray<A>): A => {
  assert.lengthOf(all, 1)
  const [one] = all
  assert.isDefined(one)
  return one
}

/** Fails the first so many times that it is called. */
const failing = (times: number, error: unknown = new RangeError("no such page")) => {
  const attempts: Array<number> = []
  const handler = Handler.make((_task, { retryAttempt }) => {
    attempts.push(retryAttempt)
    return attempts.length <= times ? Effect.fail(error) : Effect.void
  })
  return { attempts, handler }
}

const policy = new RetryPolicy({ max_retries: 2 })
const lifecycleStatuses = new LifecycleStatusConfig({ enabled: true })
const retryStatuses = new RetryStatusConfig({ enabled: true })

const always = Handler.make(() => Effect.fail(new RangeError("no such page")))

describe("TaskConsumer", () => {
  it.effect("refuses durations that are none, or that nothing could be done in", () =>
    Effect.gen(function* () {
      const given = { stopWithin: Number.NaN, stalledAfter: 0, handleWithin: "0 seconds" } as const
      const error = yield* Effect.flip(TaskConsumer.make({ handler: always, ...given }))
      assert.deepStrictEqual(
        error.mistakes.map(({ field }) => field),
        ["stopWithin", "stalledAfter", "handleWithin"]
      )
      yield* TaskConsumer.make({ handler: always, stopWithin: 0, stalledAfter: "1 second", handleWithin: "1 hour" })
    }).pipe(onMemory())
  )

  describe("a delivery without failure", () => {
    it.effect("is acknowledged when its handler returns, after it was observed", () =>
      Effect.gen(function* () {
        const seen: Array<TaskEnvelope> = []
        const { observed } = yield* working({ handler: Handler.make((task) => Effect.sync(() => seen.push(task))) })
        yield* publish({ task_id: "t1", task_type: "resize", correlation_id: "c1", payload: { width: 3 } })
        yield* settleDown
        assert.deepInclude(only(seen), { task_id: "t1", task_type: "resize", payload: { width: 3 } })
        assert.deepStrictEqual(
          observed.map(({ timestamp: _, ...rest }) => rest),
          [
            {
              consumer_name: "svc-task-consumer",
              queue_name: queue,
              component: "consumer",
              event_type: "TaskConsumerStarted"
            },
            {
              consumer_name: "svc-task-consumer",
              queue_name: queue,
              task_id: "t1",
              delivery_tag: 1,
              redelivered: false,
              correlation_id: "c1",
              retry_attempt: 0,
              task_type: "resize",
              component: "consumer",
              event_type: "TaskMessageReceived"
            },
            {
              consumer_name: "svc-task-consumer",
              queue_name: queue,
              task_id: "t1",
              correlation_id: "c1",
              retry_attempt: 0,
              task_type: "resize",
              component: "consumer",
              event_type: "TaskMessageAcked"
            }
          ]
        )
        assert.strictEqual(observed[0]?.timestamp, "1970-01-01T00:00:00+00:00")
        assert.strictEqual(yield* messagesIn(queue), 0)
        assert.deepStrictEqual(yield* statuses, [])
      }).pipe(onMemory())
    )

    it.effect("says processing before its handler and completed after it, where lifecycle statuses are enabled", () =>
      Effect.gen(function* () {
        const gate = yield* Latch.make()
        const { types } = yield* working({ handler: Handler.make(() => Latch.await(gate)), lifecycleStatuses })
        yield* publish({ task_id: "t1", task_type: "resize", service: "images" })
        yield* settleDown
        assert.deepInclude(only(yield* statuses), {
          task_id: "t1",
          status: "processing",
          correlation_id: "t1",
          task_type: "resize",
          service: "images",
          meta: {}
        })
        yield* Latch.open(gate)
        yield* settleDown
        assert.strictEqual(only(yield* statuses).status, "completed")
        assert.deepStrictEqual(types().slice(1), [
          "TaskMessageReceived",
          "TaskLifecycleStatusPublished",
          "TaskLifecycleStatusPublished",
          "TaskMessageAcked"
        ])
      }).pipe(onMemory())
    )

    it.effect("is read by the aliases of the consumer, and by the built-in one", () =>
      Effect.gen(function* () {
        const seen: Array<string> = []
        const aliasConfig = new ContractAliasConfig({ field_aliases: { task_type: "kind" } })
        yield* working({
          handler: Handler.make(({ task_id, task_type }, { rawPayload }) =>
            Effect.sync(() => seen.push(`${task_id} ${task_type} ${Object.keys(rawPayload).sort()}`))
          ),
          aliasConfig
        })
        yield* drop(queue, '{"documentId":17,"kind":"resize"}')
        yield* settleDown
        assert.deepStrictEqual(seen, ["17 resize task_id,task_type"])
      }).pipe(onMemory())
    )

    it.effect("keeps its acknowledgement back until its terminal status is confirmed", () =>
      Effect.gen(function* () {
        const server = yield* BrokerMemory.BrokerServer
        const done = yield* Latch.make()
        yield* working({ handler: Handler.make(() => Latch.await(done)), lifecycleStatuses, concurrency: 5 })
        yield* publish({ task_id: "t1" })
        yield* settleDown
        yield* server.block("low on memory")
        yield* Latch.open(done)
        yield* TestClock.adjust("15 seconds")
        yield* server.unblock
        yield* TestClock.adjust("15 seconds")
        const said = (yield* statuses).map(({ event_id, status }) => ({ event_id, status }))
        assert.strictEqual(said[0]?.status, "processing")
        const completed = said.slice(1)
        assert.isAtLeast(completed.length, 1)
        // tried more than once, it is one event for whoever reads it
        assert.lengthOf(new Set(completed.map(({ event_id }) => event_id)), 1)
        assert.strictEqual(yield* messagesIn(queue), 0)
      }).pipe(onMemory())
    )
  })

  describe("any attempt n whose handler fails", () => {
    it.effect("n < max_retries: delayed retry, attempt n+1, by a queue that the broker delays", () =>
      Effect.gen(function* () {
        const { attempts, handler } = failing(1)
        const { observed, types } = yield* working({ handler, retryPolicy: policy })
        yield* publish({ task_id: "t1", task_type: "resize" })
        yield* TestClock.adjust("29 seconds")
        assert.deepStrictEqual(attempts, [0])
        assert.strictEqual(yield* messagesIn("tasks.queue.retry.30000ms.quorum"), 1)
        yield* TestClock.adjust("1 second")
        yield* settleDown
        assert.deepStrictEqual(attempts, [0, 1])
        assert.strictEqual(yield* messagesIn(queue), 0)
        assert.strictEqual(yield* messagesIn(deadLetters), 0)
        assert.deepStrictEqual(types().slice(1), [
          "TaskMessageReceived",
          "TaskHandlerFailed",
          "ConsumerRetryScheduled",
          "TaskMessageReceived",
          "TaskMessageAcked"
        ])
        assert.deepInclude(observed[2], {
          task_id: "t1",
          exception_type: "RangeError",
          exception_message: "no such page",
          requeue: false,
          retry_attempt: 0
        })
        assert.deepInclude(observed[3], {
          queue_name: "tasks.queue.retry.30000ms.quorum",
          source_queue_name: queue,
          retry_attempt: 1,
          max_retries: 2,
          reason: "handler_error",
          task_type: "resize"
        })
      }).pipe(onMemory())
    )

    it.effect("n equals max_retries: dead-lettered as handler_error into the queue of its source, byte for byte", () =>
      Effect.gen(function* () {
        const { attempts, handler } = failing(9)
        const { types } = yield* working({ handler, retryPolicy: policy })
        yield* drop(queue, '{ "task_id" : "t1",  "x": null }', { correlationId: "c1", priority: 4, contentType: "a/b" })
        yield* TestClock.adjust("5 minutes")
        assert.deepStrictEqual(attempts, [0, 1, 2])
        const channel = yield* (yield* BrokerClient).acquireChannel()
        const dead = Option.getOrThrow(yield* channel.get(deadLetters))
        assert.strictEqual(Buffer.from(dead.content).toString(), '{ "task_id" : "t1",  "x": null }')
        assert.deepInclude(dead.properties, { correlationId: "c1", priority: 4, contentType: "a/b" })
        assert.deepStrictEqual(dead.properties.headers, {
          "x-svc-retry-attempt": 2,
          "x-svc-max-retries": 2,
          "x-svc-source-queue": queue,
          "x-svc-failure-reason": "handler_error",
          "x-svc-exception-type": "RangeError",
          "x-svc-dead-lettered-at": "1970-01-01T00:01:00Z"
        })
        assert.deepStrictEqual(types().slice(-3), [
          "TaskMessageReceived",
          "TaskHandlerFailed",
          "ConsumerDeadLetterPublished"
        ])
      }).pipe(onMemory())
    )

    it.effect("dies: as it fails, and the consumer goes on", () =>
      Effect.gen(function* () {
        const seen: Array<string> = []
        yield* working({
          handler: Handler.make(({ task_id }) => {
            seen.push(task_id)
            if (task_id === "throws") throw new TypeError("at once")
            if (task_id === "dies") return Effect.die("a text")
            if (task_id === "interrupts") return Effect.interrupt
            return Effect.void
          }),
          retryPolicy: new RetryPolicy({ max_retries: 0 })
        })
        yield* Effect.forEach(["throws", "dies", "interrupts", "good"], (task_id) => publish({ task_id }))
        yield* settleDown
        assert.deepStrictEqual(seen, ["throws", "dies", "interrupts", "good"])
        assert.deepStrictEqual(
          (yield* letters(deadLetters)).map(({ properties }) => properties.headers?.["x-svc-exception-type"]),
          ["TypeError", "string", "Interrupted"]
        )
      }).pipe(onMemory())
    )

    it.effect("is not tried again when its error says that it is pointless", () =>
      Effect.gen(function* () {
        yield* working({
          handler: Handler.make(() => Effect.fail(new Handler.PermanentFailure({ message: "gone for good" }))),
          retryPolicy: policy
        })
        yield* publish({ task_id: "t1" })
        yield* settleDown
        assert.deepInclude(only(yield* letters(deadLetters)).properties.headers, {
          "x-svc-retry-attempt": 0,
          "x-svc-failure-reason": "handler_error",
          "x-svc-exception-type": "PermanentFailure"
        })
      }).pipe(onMemory())
    )

    it.effect("takes longer than handleWithin: it is interrupted, and has failed", () =>
      Effect.gen(function* () {
        const interrupted: Array<string> = []
        const { observed } = yield* working({
          handler: Handler.make(({ task_id }) =>
            Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted.push(task_id)))
          ),
          handleWithin: "10 seconds",
          retryPolicy: policy
        })
        yield* publish({ task_id: "t1" })
        yield* TestClock.adjust("10 seconds")
        assert.deepStrictEqual(interrupted, ["t1"])
        assert.deepInclude(observed[2], {
          event_type: "TaskHandlerFailed",
          exception_type: "HandlerTimeout",
          exception_message: "The handler was interrupted, because it did not end within 10s (handleWithin)."
        })
        assert.strictEqual(yield* messagesIn("tasks.queue.retry.30000ms.quorum"), 1)
      }).pipe(onMemory())
    )

    it.effect("without a retry policy it is rejected, to the dead-letter exchange where there is one", () =>
      Effect.gen(function* () {
        const broker = yield* Broker
        yield* broker.declare({
          exchanges: [{ name: "dead", kind: "fanout" }],
          queues: [{ name: "graveyard" }],
          bindings: [{ exchange: "dead", queue: "graveyard", routingKey: "" }]
        })
        const { observed } = yield* working({ handler: always, lifecycleStatuses })
        yield* publish({ task_id: "t1" })
        yield* settleDown
        assert.deepInclude(only(yield* letters("graveyard")).body, { task_id: "t1" })
        assert.deepInclude(observed.at(-1), {
          event_type: "TaskMessageRejected",
          task_id: "t1",
          requeue: false,
          reason: "handler_error"
        })
        assert.deepStrictEqual(
          (yield* statuses).map(({ message, status }) => [status, message]),
          [
            ["processing", undefined],
            ["failed", "no such page"]
          ]
        )
      }).pipe(onMemory(shared({ dead_letter_exchange: "dead" })))
    )

    it.effect("says retrying and, at the end, failed, with attempts, where retry statuses are enabled", () =>
      Effect.gen(function* () {
        yield* working({ handler: always, retryPolicy: policy, retryStatuses, lifecycleStatuses })
        yield* publish({ task_id: "t1" })
        yield* TestClock.adjust("2 minutes")
        assert.deepStrictEqual(
          (yield* statuses).map(({ message, meta, status }) => [status, message, meta]),
          [
            ["processing", undefined, {}],
            ["retrying", "Retry 1/2 is scheduled: no such page", { retry_attempt: 1, max_retries: 2 }],
            ["processing", undefined, {}],
            ["retrying", "Retry 2/2 is scheduled: no such page", { retry_attempt: 2, max_retries: 2 }],
            ["processing", undefined, {}],
            ["failed", "no such page", { retry_attempt: 2, max_retries: 2 }]
          ]
        )
      }).pipe(onMemory())
    )

    it.effect("says failed by its lifecycle when it is dead-lettered and retry statuses are not enabled", () =>
      Effect.gen(function* () {
        yield* working({
          handler: always,
          retryPolicy: new RetryPolicy({ max_retries: 1 }),
          lifecycleStatuses: new LifecycleStatusConfig({ enabled: true, include_error_text: false })
        })
        yield* publish({ task_id: "t1" })
        yield* TestClock.adjust("2 minutes")
        assert.deepStrictEqual(
          (yield* statuses).map(({ message, status }) => [status, message]),
          [
            ["processing", undefined],
            ["processing", undefined],
            ["failed", "The handler failed."]
          ]
        )
      }).pipe(onMemory())
    )

    it.effect("max_retries 0 dead-letters the first failure", () =>
      Effect.gen(function* () {
        const { attempts, handler } = failing(9)
        yield* working({ handler, retryPolicy: new RetryPolicy({ max_retries: 0 }) })
        yield* publish({ task_id: "t1" })
        yield* settleDown
        assert.deepStrictEqual(attempts, [0])
        assert.strictEqual(yield* messagesIn(deadLetters), 1)
      }).pipe(onMemory())
    )
  })

  describe("retry headers", () => {
    it.effect("x-death and its companions, which the broker adds on the way back, are not carried along", () =>
      Effect.gen(function* () {
        const seen: Array<unknown> = []
        yield* working({
          handler: Handler.make((_task, { headers }) => {
            const deaths = headers["x-death"]
            seen.push(Array.isArray(deaths) ? Object(deaths[0]).count : deaths)
            return Effect.fail("again")
          }),
          retryPolicy: policy
        })
        yield* publish({ task_id: "t1" })
        yield* TestClock.adjust("2 minutes")
        // had it been copied, the broker would count on
        assert.deepStrictEqual(seen, [undefined, 1, 1])
        const { headers = {} } = only(yield* letters(deadLetters)).properties
        assert.deepStrictEqual(
          Object.keys(headers).filter((name) => name.includes("death")),
          []
        )
      }).pipe(onMemory())
    )

    it.effect("a message keeps its priority through retries", () =>
      Effect.gen(function* () {
        yield* working({ handler: always, retryPolicy: policy })
        yield* publish({ task_id: "t1", priority: 7 })
        yield* settleDown
        assert.strictEqual(only(yield* letters("tasks.queue.retry.30000ms.quorum")).properties.priority, 7)
      }).pipe(onMemory(shared({ task_max_priority: 9 })))
    )
  })

  describe("an observation sink", () => {
    it.effect("that throws at everything disturbs no handler", () =>
      Effect.gen(function* () {
        const { attempts, handler } = failing(1)
        yield* working({
          handler,
          retryPolicy: policy,
          lifecycleStatuses,
          observationSink: () => {
            throw new TypeError("no sink")
          }
        })
        yield* publish({ task_id: "t1" })
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual(attempts, [0, 1])
        assert.strictEqual(yield* messagesIn(queue), 0)
      }).pipe(onMemory())
    )

    it.effect("that hangs holds nothing up", () =>
      Effect.gen(function* () {
        const { attempts, handler } = failing(0)
        const observationSink = yield* ObservationSink.queued(() => Effect.never)
        yield* working({ handler, observationSink })
        yield* Effect.forEach(["a", "b", "c"], (task_id) => publish({ task_id }))
        yield* settleDown
        assert.lengthOf(attempts, 3)
        yield* Effect.addFinalizer(() => Effect.forkDetach(TestClock.adjust("1 minute")))
      }).pipe(onMemory())
    )
  })

  describe("an original delivery that cannot be read", () => {
    const bodies: ReadonlyArray<readonly [string, string | Uint8Array, string, string | null]> = [
      ["malformed JSON", "{", "malformed_json", null],
      ["invalid UTF-8", Uint8Array.of(0x22, 0xff, 0x22), "malformed_json", null],
      ["an empty body", "", "malformed_json", null],
      ["JSON that is no object", "[1]", "invalid_envelope", "EnvelopeError"],
      ["an envelope without task_id", "{}", "invalid_envelope", "EnvelopeError"],
      ["a payload that is no object", '{"task_id":"t1","payload":[]}', "invalid_envelope", "EnvelopeError"],
      ["a priority out of range", '{"task_id":"t1","priority":256}', "invalid_envelope", "EnvelopeError"]
    ]

    it.effect.each(bodies)("%s: dead-lettered directly, without a status", ([, body, reason, exceptionType]) =>
      Effect.gen(function* () {
        const { types } = yield* working({ handler: always, retryPolicy: policy, retryStatuses, lifecycleStatuses })
        yield* drop(queue, body, { headers: { mine: "kept" } })
        yield* settleDown
        const channel = yield* (yield* BrokerClient).acquireChannel()
        const dead = Option.getOrThrow(yield* channel.get(deadLetters))
        assert.deepStrictEqual(Buffer.from(dead.content), Buffer.from(body))
        assert.deepStrictEqual(dead.properties.headers, {
          mine: "kept",
          "x-svc-retry-attempt": 0,
          "x-svc-max-retries": 2,
          "x-svc-source-queue": queue,
          "x-svc-failure-reason": reason,
          "x-svc-exception-type": exceptionType,
          "x-svc-dead-lettered-at": "1970-01-01T00:00:00Z"
        })
        assert.strictEqual(types().at(-1), "ConsumerDeadLetterPublished")
        assert.deepStrictEqual(yield* statuses, [])
      }).pipe(onMemory())
    )

    it.effect.each(bodies)("%s, without a retry policy: rejected, and the consumer goes on", ([, body, reason]) =>
      Effect.gen(function* () {
        const { attempts, handler } = failing(0)
        const { observed } = yield* working({ handler })
        yield* drop(queue, body)
        yield* publish({ task_id: "t1" })
        yield* settleDown
        assert.lengthOf(attempts, 1)
        const rejected = observed.filter(({ event_type }) => event_type === "TaskMessageRejected")
        assert.deepInclude(only(rejected), { requeue: false, reason })
        assert.strictEqual(yield* messagesIn(queue), 0)
      }).pipe(onMemory())
    )
  })

  describe("a dead letter", () => {
    it.effect("is recorded with all its fields once it is safe in its queue", () =>
      Effect.gen(function* () {
        const records: Array<DeadLetterRecord> = []
        const dlqStore = {
          record: (record: DeadLetterRecord) =>
            Effect.map(messagesIn(deadLetters), (there) => {
              assert.strictEqual(there, 1)
              records.push(record)
            }).pipe(Effect.provideService(Broker, broker))
        }
        const broker = yield* Broker
        yield* working({ handler: always, retryPolicy: new RetryPolicy({ max_retries: 1 }), dlqStore })
        yield* drop(queue, '{"task_id":"t1"}', { correlationId: "c1", contentType: "application/json" })
        yield* TestClock.adjust("30 seconds")
        yield* settleDown
        const { dlq_id, exception_stack, ...rest } = only(records)
        assert.match(dlq_id, /^[0-9a-f]{64}$/)
        assert.match(exception_stack ?? "", /^RangeError: no such page\n/)
        assert.deepStrictEqual(rest, {
          queue_name: deadLetters,
          source_queue_name: queue,
          retry_queue_name: "tasks.queue.retry.30000ms.quorum",
          task_id: "t1",
          correlation_id: "c1",
          reason: "handler_error",
          exception_type: "RangeError",
          exception_message: "no such page",
          retry_attempt: 1,
          max_retries: 1,
          headers: {
            "x-svc-retry-attempt": 1,
            "x-svc-max-retries": 1,
            "x-svc-source-queue": queue,
            "x-svc-failure-reason": "handler_error",
            "x-svc-exception-type": "RangeError",
            "x-svc-dead-lettered-at": "1970-01-01T00:00:30Z"
          },
          content_type: "application/json",
          body: { task_id: "t1" },
          body_encoding: "json",
          raw_body_b64: Buffer.from('{"task_id":"t1"}').toString("base64"),
          dead_lettered_at: "1970-01-01T00:00:30+00:00",
          state: "dead_lettered",
          replay_count: 0,
          replayed_at: null,
          replay_target_queue_name: null,
          properties: {}
        })
      }).pipe(onMemory())
    )

    it.effect.each(["fails", "dies", "throws", "hangs"])(
      "is acknowledged although its record %s, which is observed",
      (how) =>
        Effect.gen(function* () {
          const dlqStore = {
            record: () => {
              if (how === "throws") throw new TypeError("no store")
              return how === "hangs"
                ? Effect.never
                : how === "dies"
                  ? Effect.die("x")
                  : Effect.fail(new RangeError("full"))
            }
          }
          const { observed } = yield* working({
            handler: always,
            retryPolicy: new RetryPolicy({ max_retries: 0 }),
            dlqStore
          })
          yield* publish({ task_id: "t1" })
          yield* TestClock.adjust("5 seconds")
          yield* settleDown
          assert.deepInclude(observed.at(-1), {
            event_type: "ConsumerDLQRecordPersistFailed",
            task_id: "t1",
            queue_name: deadLetters,
            reason: "handler_error"
          })
          assert.strictEqual(yield* messagesIn(queue), 0)
          assert.strictEqual(yield* messagesIn(deadLetters), 1)
        }).pipe(onMemory())
    )
  })

  describe("a batch envelope delivery", () => {
    const tasks = [
      { task_id: "a", priority: 5 },
      { task_id: "b", priority: 5, correlation_id: "cb" },
      { task_id: "c", priority: 5 }
    ]
    const publishBatch = Effect.flatMap(BrokerClient, (client) =>
      client.publishTasks(tasks, { mode: "batch_envelope", batchId: "batch-1", meta: { from: "x" } })
    )

    it.effect("is fanned out into one task message per item, with the headers of its place and the priority", () =>
      Effect.gen(function* () {
        const contexts: Array<HandlerContext> = []
        const { observed } = yield* working({
          handler: Handler.make((_task, context) => Effect.sync(() => contexts.push(context))),
          retryPolicy: policy
        })
        yield* publishBatch
        yield* settleDown
        assert.deepStrictEqual(
          contexts.map(({ batchId, batchIndex, batchSize, correlationId, headers, taskId }) => ({
            batchId,
            batchIndex,
            batchSize,
            correlationId,
            headers,
            taskId
          })),
          ["a", "b", "c"].map((taskId, index) => ({
            batchId: "batch-1",
            batchIndex: index,
            batchSize: 3,
            correlationId: taskId === "b" ? "cb" : taskId,
            headers: { task_id: taskId, batch_id: "batch-1", batch_index: index, batch_size: 3 },
            taskId
          }))
        )
        assert.deepInclude(contexts[0]?.rawPayload, { spec_version: "1.0", task_id: "a", priority: 5 })
        const acked = observed.filter(({ event_type }) => event_type === "TaskMessageAcked")
        assert.lengthOf(acked, 4)
        assert.deepInclude(acked[0], { task_id: null })
        assert.strictEqual(yield* messagesIn(queue), 0)
      }).pipe(onMemory(shared({ task_max_priority: 9 })))
    )

    it.effect("only a failed item is retried, never the whole envelope, and it keeps its place", () =>
      Effect.gen(function* () {
        const seen: Array<string> = []
        yield* working({
          handler: Handler.make(({ task_id }, { batchIndex, retryAttempt }) => {
            seen.push(`${task_id} ${batchIndex} ${retryAttempt}`)
            return task_id === "b" && retryAttempt === 0 ? Effect.fail("once") : Effect.void
          }),
          retryPolicy: policy
        })
        yield* publishBatch
        yield* settleDown
        yield* TestClock.adjust("30 seconds")
        yield* settleDown
        assert.deepStrictEqual(seen, ["a 0 0", "b 1 0", "c 2 0", "b 1 1"])
      }).pipe(onMemory())
    )

    it.effect("is not permitted without a retry policy: rejected as unsupported_batch_envelope", () =>
      Effect.gen(function* () {
        const { attempts, handler } = failing(0)
        const { observed } = yield* working({ handler })
        yield* publishBatch
        yield* settleDown
        assert.lengthOf(attempts, 0)
        assert.deepInclude(observed.at(-1), {
          event_type: "TaskMessageRejected",
          task_id: null,
          reason: "unsupported_batch_envelope"
        })
        assert.strictEqual(yield* messagesIn(queue), 0)
      }).pipe(onMemory())
    )

    it.effect("its items keep the numbers that JavaScript does not have", () =>
      Effect.gen(function* () {
        yield* working({ handler: always, retryPolicy: new RetryPolicy({ max_retries: 0 }) })
        const payload =
          '{"wide":9007199254740993,"most":1e400,"least":-1E+999,"fraction":1.50,"list":[12345678901234567890]}'
        yield* drop(queue, `{"batch_id":"b","tasks":[{"task_id":"a","payload":${payload}}]}`)
        yield* settleDown
        const { get } = yield* (yield* Broker).channel({ prefetch: 1 })
        const { content } = Option.getOrThrow(yield* get(deadLetters))
        assert.include(Buffer.from(content).toString(), `"payload":${payload.replace("1.50", "1.5")}`)
      }).pipe(onMemory())
    )

    it.effect("with an invalid item it is dead-lettered whole, and nothing of it runs", () =>
      Effect.gen(function* () {
        const { attempts, handler } = failing(0)
        yield* working({ handler, retryPolicy: policy })
        yield* drop(queue, '{"batch_id":"b","tasks":[{"task_id":"a"},{}]}')
        yield* drop(queue, '{"batch_id":"b","tasks":[]}')
        yield* settleDown
        assert.lengthOf(attempts, 0)
        assert.deepStrictEqual(
          (yield* letters(deadLetters)).map(({ properties }) => properties.headers?.["x-svc-failure-reason"]),
          ["invalid_envelope", "invalid_envelope"]
        )
      }).pipe(onMemory())
    )

    it.effect("of more than one task type on a routed topology: dead-lettered as mixed_task_type_batch", () =>
      Effect.gen(function* () {
        const { attempts, handler } = failing(0)
        yield* working({ handler, retryPolicy: policy })
        const item = (task_type: string) => ({ task_id: task_type, task_type })
        yield* drop(queue, JSON.stringify({ batch_id: "b", tasks: [item("resize"), item("rotate")] }))
        yield* drop(queue, JSON.stringify({ batch_id: "b", tasks: [item("resize"), { task_id: "x" }] }))
        yield* settleDown
        assert.lengthOf(attempts, 2)
        assert.deepInclude(only(yield* letters(deadLetters)).properties.headers, {
          "x-svc-failure-reason": "mixed_task_type_batch",
          "x-svc-exception-type": null
        })
      }).pipe(onMemory(routed()))
    )
  })

  it.effect("dead-letters a task whose handler throws what nobody may look at", () =>
    Effect.gen(function* () {
      const shut = () => {
        throw new Error("shut")
      }
      let runs = 0
      yield* working({
        handler: Handler.make((): Effect.Effect<void> => {
          runs++
          throw new Proxy({}, { get: shut, has: shut, getPrototypeOf: shut })
        }),
        retryPolicy: new RetryPolicy({ max_retries: 0 })
      })
      yield* publish({ task_id: "t1" })
      yield* settleDown
      assert.strictEqual(runs, 1)
      assert.deepInclude(only(yield* letters(deadLetters)).properties.headers, { "x-svc-exception-type": "Error" })
    }).pipe(onMemory())
  )

  describe("manual_retry", () => {
    it.effect(
      "republishes under the same task id by the routing of its new type, after the status manual_retrying",
      () =>
        Effect.gen(function* () {
          const { types } = yield* working({
            handler: Handler.make((_task, context) =>
              Effect.andThen(
                context.manualRetry({
                  taskType: "rotate",
                  payloadMerge: { angle: 90 },
                  priority: 3,
                  reason: "too wide",
                  meta: { seen: true },
                  service: "turner"
                }),
                Effect.die("never reached")
              )
            ),
            lifecycleStatuses,
            retryPolicy: policy
          })
          const broker = yield* Broker
          yield* broker.declare({
            exchanges: [],
            queues: [{ name: "rotate.queue" }],
            bindings: [{ exchange: "tasks", queue: "rotate.queue", routingKey: "rotate" }]
          })
          yield* publish({ task_id: "t1", task_type: "resize", payload: { width: 3 }, correlation_id: "c1" })
          yield* settleDown
          const { body, properties } = only(yield* letters("rotate.queue"))
          assert.deepInclude(body, {
            task_id: "t1",
            task_type: "rotate",
            payload: { width: 3, angle: 90 },
            priority: 3,
            service: "turner",
            correlation_id: "c1"
          })
          assert.deepStrictEqual(properties.headers, {
            task_id: "t1",
            "x-svc-manual-retry-count": 1,
            "x-svc-manual-retry-source-consumer": "svc-task-consumer",
            "x-svc-manual-retry-from-task-type": "resize",
            "x-svc-manual-retry-reason": "too wide"
          })
          const said = yield* statuses
          assert.deepStrictEqual(
            said.map(({ status }) => status),
            ["processing", "manual_retrying"]
          )
          assert.deepInclude(said[1], { task_id: "t1", message: "too wide", correlation_id: "c1" })
          assert.deepStrictEqual(said[1].meta, {
            seen: true,
            manual_retry: {
              count: 1,
              source_consumer: "svc-task-consumer",
              previous_task_type: "resize",
              reason: "too wide",
              target_task_type: "rotate"
            }
          })
          assert.strictEqual(types().at(-1), "TaskMessageAcked")
          assert.strictEqual(yield* messagesIn(queue), 0)
        }).pipe(onMemory(routed({ task_types: ["resize"] })))
    )

    it.effect("keeps the numbers that JavaScript does not have, which the handler sees as ordinary ones", () =>
      Effect.gen(function* () {
        const seen: Array<unknown> = []
        yield* working({
          handler: Handler.make(({ payload, task_id }, context) => {
            seen.push([task_id, payload, context.rawPayload["payload"]])
            return context.manualRetryCount === 0
              ? context.manualRetry({ payloadMerge: { page: 2 } })
              : Effect.fail("no")
          }),
          retryPolicy: new RetryPolicy({ max_retries: 0 })
        })
        yield* drop(queue, '{"documentId":9007199254740993,"payload":{"order":12345678901234567890,"most":1e400}}')
        yield* settleDown
        const first = { order: 12345678901234567000, most: Number.POSITIVE_INFINITY }
        const second = { ...first, page: 2 }
        assert.deepStrictEqual(seen, [
          ["9007199254740993", first, first],
          ["9007199254740993", second, second]
        ])
        const { get } = yield* (yield* Broker).channel({ prefetch: 1 })
        const { content } = Option.getOrThrow(yield* get(deadLetters))
        assert.include(
          Buffer.from(content).toString(),
          '"task_id":"9007199254740993","payload":{"order":12345678901234567890,"most":1e400,"page":2}'
        )
      }).pipe(onMemory())
    )

    it.effect("reaches the next worker with its lineage, in its context and on its statuses", () =>
      Effect.gen(function* () {
        const seen: Array<object> = []
        yield* working({
          handler: Handler.make((_task, context) => {
            const { manualRetryCount, manualRetryPreviousTaskType, manualRetryReason, manualRetrySourceConsumer } =
              context
            seen.push([manualRetryCount, manualRetryPreviousTaskType, manualRetrySourceConsumer, manualRetryReason])
            return manualRetryCount < 2 ? context.manualRetry({ reason: "again" }) : context.publishStatus("searching")
          })
        })
        yield* publish({ task_id: "t1", task_type: "resize" })
        yield* settleDown
        assert.deepStrictEqual(seen, [
          [0, undefined, undefined, undefined],
          [1, "resize", "svc-task-consumer", "again"],
          [2, "resize", "svc-task-consumer", "again"]
        ])
        const last = (yield* statuses).at(-1)
        assert.deepStrictEqual(last.meta, {
          manual_retry: {
            count: 2,
            previous_task_type: "resize",
            source_consumer: "svc-task-consumer",
            reason: "again"
          }
        })
      }).pipe(onMemory())
    )

    it.effect("to a task_type with no bound queue: no queue receives the message, and this copy is not lost", () =>
      Effect.gen(function* () {
        const { types } = yield* working({
          handler: Handler.make((_task, context) => context.manualRetry({ taskType: "nobody" })),
          retryPolicy: new RetryPolicy({ max_retries: 0 })
        })
        yield* publish({ task_id: "t1", task_type: "resize" })
        yield* settleDown
        assert.deepStrictEqual(
          (yield* statuses).map(({ status }) => status),
          ["manual_retrying"]
        )
        assert.deepInclude(only(yield* letters(deadLetters)).properties.headers, {
          "x-svc-failure-reason": "handler_error",
          "x-svc-exception-type": "Unroutable"
        })
        assert.deepStrictEqual(types().slice(-2), ["TaskHandlerFailed", "ConsumerDeadLetterPublished"])
      }).pipe(onMemory(routed()))
    )

    it.effect("that AMQP cannot carry fails its handler, which runs no more often than others", () =>
      Effect.gen(function* () {
        let runs = 0
        yield* working({
          handler: Handler.make((_task, context) => {
            runs++
            return context.manualRetry({ headers: { CC: "no list" } })
          }),
          retryPolicy: new RetryPolicy({ max_retries: 1 })
        })
        yield* publish({ task_id: "t1" })
        yield* settleDown
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(runs, 2)
        assert.deepInclude(only(yield* letters(deadLetters)).properties.headers, {
          "x-svc-failure-reason": "handler_error",
          "x-svc-exception-type": "PublishRefused"
        })
      }).pipe(onMemory())
    )

    it.effect("is carried out by a handler that swallows it, and discarded by one that fails otherwise", () =>
      Effect.gen(function* () {
        const counts: Array<number> = []
        yield* working({
          handler: Handler.make((_task, context) => {
            counts.push(context.manualRetryCount)
            const asked = Effect.exit(context.manualRetry())
            if (context.manualRetryCount === 0) return asked
            return Effect.andThen(asked, Effect.fail(new RangeError("otherwise")))
          }),
          retryPolicy: new RetryPolicy({ max_retries: 0 })
        })
        yield* publish({ task_id: "t1" })
        yield* settleDown
        assert.deepStrictEqual(counts, [0, 1])
        const { properties } = only(yield* letters(deadLetters))
        assert.deepInclude(properties.headers, { "x-svc-exception-type": "RangeError" })
      }).pipe(onMemory())
    )

    it.effect("that cannot be meant is the handler's to know, and hands nothing over", () =>
      Effect.gen(function* () {
        const errors: Array<string> = []
        yield* working({
          handler: Handler.make((_task, context) =>
            Effect.forEach(
              [
                context.manualRetry({ payload: {}, payloadMerge: {} }),
                context.manualRetry({ taskType: " " }),
                context.manualRetry({ extraFields: { task_id: "other" } }),
                context.manualRetry({ priority: 10 })
              ],
              (asked) => Effect.flip(asked).pipe(Effect.map(({ _tag, message }) => errors.push(`${_tag}: ${message}`)))
            )
          )
        })
        yield* publish({ task_id: "t1" })
        yield* settleDown
        assert.deepStrictEqual(
          errors.map((error) => error.split(":")[0]),
          ["InvalidManualRetry", "InvalidManualRetry", "InvalidManualRetry", "InvalidPublish"]
        )
        assert.deepStrictEqual(yield* statuses, [])
        assert.strictEqual(yield* messagesIn(queue), 0)
      }).pipe(onMemory(shared({ task_max_priority: 9 })))
    )

    it.effect("retries of the next worker count from 0: broker retry applies to it independently", () =>
      Effect.gen(function* () {
        const seen: Array<string> = []
        yield* working({
          handler: Handler.make((_task, context) => {
            seen.push(`${context.manualRetryCount}/${context.retryAttempt}`)
            if (context.retryAttempt === 0) return Effect.fail("first")
            return context.manualRetryCount === 0 ? context.manualRetry() : Effect.void
          }),
          retryPolicy: policy
        })
        yield* publish({ task_id: "t1" })
        yield* TestClock.adjust("2 minutes")
        assert.deepStrictEqual(seen, ["0/0", "0/1", "1/0", "1/1"])
      }).pipe(onMemory())
    )
  })

  describe("settings", () => {
    it.effect("are refused by name, all at once", () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(
          TaskConsumer.make({
            handler: always,
            concurrency: 0,
            consumeTimeoutSeconds: -1,
            idleRetrySeconds: Number.NaN,
            consumerName: " "
          })
        )
        assert.deepStrictEqual(
          error.mistakes.map(({ field }) => field),
          ["concurrency", "consumeTimeoutSeconds", "idleRetrySeconds", "consumerName"]
        )
      }).pipe(onMemory())
    )

    it.effect("a workflow topology has no task queue", () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(TaskConsumer.make({ handler: always }))
        assert.include(error.message, "topology is a shared_status_workflow, which has no task queue")
      }).pipe(onMemory(workflow()))
    )

    it.effect("concurrency is the topology's prefetch_count unless it is given", () =>
      Effect.gen(function* () {
        const seen: Array<string> = []
        yield* working({
          handler: Handler.make(({ task_id }) => {
            seen.push(task_id)
            return Effect.never
          })
        })
        yield* Effect.forEach(["a", "b", "c", "d"], (task_id) => publish({ task_id }))
        yield* settleDown
        assert.deepStrictEqual(seen, ["a", "b", "c"])
      }).pipe(onMemory(shared({ prefetch_count: 3 })))
    )

    it.effect("a handler timeout that is not below the broker's own is warned of", () =>
      Effect.gen(function* () {
        const { layer, lines } = logged()
        yield* Effect.provide(working({ handler: always, handleWithin: "30 minutes" }), layer)
        assert.include(
          lines().join("\n"),
          "Handlers may take 30m, but the broker redelivers a message that is not acknowledged within 30m. Set a shorter time limit (handleWithin or timeout_seconds)"
        )
      }).pipe(onMemory())
    )
  })

  describe("stop", () => {
    it.effect("with consume_timeout_seconds none is as prompt as with any: deliveries are pushed", () =>
      Effect.gen(function* () {
        const { stop } = yield* working({ handler: always, consumeTimeoutSeconds: null })
        yield* stop
        yield* publish({ task_id: "t1" })
        yield* settleDown
        assert.strictEqual(yield* messagesIn(queue), 1)
      }).pipe(onMemory())
    )

    it.effect("lets a handler end, and acknowledges it", () =>
      Effect.gen(function* () {
        const { stop } = yield* working({ handler: Handler.make(() => Effect.sleep("5 seconds")) })
        yield* publish({ task_id: "t1" })
        yield* settleDown
        const stopping = yield* Effect.forkChild(stop)
        yield* TestClock.adjust("5 seconds")
        assert.isTrue(Exit.isSuccess(yield* Fiber.await(stopping)))
        assert.strictEqual(yield* messagesIn(queue), 0)
      }).pipe(onMemory())
    )
  })

  it.effect("a queue that was deleted comes back, with its bindings, and work goes on", () =>
    Effect.gen(function* () {
      const { attempts, handler } = failing(0)
      yield* working({ handler, retryPolicy: policy })
      yield* (yield* Broker).remove({ queues: [queue] })
      yield* TestClock.adjust("10 seconds")
      yield* publish({ task_id: "t1" })
      yield* settleDown
      assert.lengthOf(attempts, 1)
    }).pipe(onMemory())
  )
})
