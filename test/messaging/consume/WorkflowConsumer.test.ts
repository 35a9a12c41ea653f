import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Latch, Layer, Option, Schema } from "effect"
import * as BrokerMemory from "../../../layers/BrokerMemory.ts"
import { StageDedup } from "../../../src/messaging/consume/StageDedup.ts"
import * as WorkflowConsumer from "../../../src/messaging/consume/WorkflowConsumer.ts"
import type { WorkflowContext } from "../../../src/messaging/consume/WorkflowContext.ts"
import * as WorkflowHandler from "../../../src/messaging/consume/WorkflowHandler.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import { ContractAliasConfig } from "../../../src/messaging/topology/Aliases.ts"
import { RetryPolicy } from "../../../src/messaging/topology/RetryPolicy.ts"
import type { StageContract } from "../../../src/messaging/topology/Stage.ts"
import { RetryStatusConfig } from "../../../src/messaging/topology/StatusSettings.ts"
import { Broker } from "../../../src/services/Broker.ts"
import { RedisError } from "../../../src/services/Redis.ts"
import { atWork, desk, observer, pass, settleDown } from "../AtWork.ts"
import { letters } from "../Letters.ts"
import { by, shared, workflow } from "../SampleTopologies.ts"

const nothing = WorkflowHandler.make(() => Effect.void)

/** Fails as often as it is asked to, and tells with which attempt it was called. */
const failing = (error: unknown, attempts: Array<number> = []) =>
  WorkflowHandler.make((_, { retryAttempt }) => {
    attempts.push(retryAttempt)
    return Effect.fail(error)
  })

/** One stage, `write`, with a contract, behind the stage `plan`. */
const contracted = (contract: StageContract, more: Parameters<typeof workflow>[0] = {}) =>
  workflow({
    stages: [
      { name: "plan", queue: "plan.queue", ...by("planner.plan.in") },
      { name: "write", queue: "write.queue", ...by("writer.write.in"), ...contract }
    ],
    entry_routes: [],
    ...more
  })

const send = (stage: string, more: Record<string, unknown> = {}) =>
  Effect.flatMap(BrokerClient, ({ publishToStage }) => publishToStage({ task_id: "t1", ...more }, stage))

/** Around the checks that a publish makes. */
const sendBytes = (queue: string, bytes: Uint8Array | string) =>
  Effect.flatMap(BrokerClient, ({ publishRawToQueue }) => publishRawToQueue(queue, Buffer.from(bytes)))

const ready = (queue: string) =>
  Effect.flatMap(Broker, ({ inspect }) => Effect.map(inspect(queue), (found) => Option.getOrThrow(found).messages))

const reasonsIn = (queue: string) =>
  Effect.map(letters(queue), (all) =>
    all.map(({ properties: { headers = {} } }) => [headers["x-svc-failure-reason"], headers["x-svc-exception-type"]])
  )

describe("WorkflowConsumer", () => {
  it.effect("works on its stage's inbox, and tells what it observes", () => {
    const observed = observer()
    return Effect.gen(function* () {
      const seen: Array<unknown> = []
      yield* atWork(
        WorkflowConsumer.make({
          stage: "write",
          handler: WorkflowHandler.make(({ payload, stage }, context) =>
            Effect.sync(() => seen.push([stage, payload, context.stage, context.sourceQueueName]))
          ),
          observationSink: observed.sink
        })
      )
      yield* send("write", { message_id: "m1", payload: { n: 1 }, correlation_id: "c1", origin_stage: "outline" })
      yield* settleDown
      assert.deepStrictEqual(seen, [["write", { n: 1 }, "write", "write.queue"]])
      assert.strictEqual(yield* ready("write.queue"), 0)
      const told = {
        consumer_name: "svc-workflow-consumer",
        queue_name: "write.queue",
        stage: "write",
        routing_key: "writer.write.in",
        task_id: "t1",
        message_id: "m1",
        origin_stage: "outline",
        correlation_id: "c1"
      }
      assert.deepStrictEqual(observed.types(), [
        "WorkflowStageStarted",
        "WorkflowMessageReceived",
        "WorkflowStageAcked"
      ])
      assert.deepStrictEqual(observed.of("WorkflowMessageReceived"), [
        { ...told, delivery_tag: 1, redelivered: false, retry_attempt: 0 }
      ])
      assert.deepStrictEqual(observed.of("WorkflowStageAcked"), [told])
    }).pipe(Effect.scoped, Effect.provide(desk({ topology: workflow() })))
  })

  it.effect("declares its own inbox, also where its client publishes only", () =>
    Effect.gen(function* () {
      yield* atWork(WorkflowConsumer.make({ stage: "write", handler: nothing }))
      yield* send("write")
      const broker = yield* Broker
      assert.isTrue(Option.isNone(yield* broker.inspect("outline.queue")))
    }).pipe(Effect.scoped, Effect.provide(desk({ topology: workflow(), publishOnly: true })))
  )

  it.effect("is refused for a stage that the topology does not have, and on other topologies", () =>
    Effect.gen(function* () {
      const unknown = yield* Effect.flip(WorkflowConsumer.make({ stage: "print", handler: nothing }))
      assert.deepInclude(unknown, { reason: "unknown_stage" })
      const tasks = yield* BrokerClient.make({ topology: shared() })
      const other = yield* WorkflowConsumer.make({ stage: "write", handler: nothing }).pipe(
        Effect.provideService(BrokerClient, tasks),
        Effect.flip
      )
      assert.deepInclude(other, { reason: "not_a_workflow" })
    }).pipe(Effect.provide(desk({ topology: workflow() })))
  )

  it.effect("can be named by its inbox", () =>
    Effect.gen(function* () {
      const { stage } = yield* WorkflowConsumer.make({ queue: "write.queue", handler: nothing })
      assert.strictEqual(stage, "write")
      const error = yield* Effect.flip(WorkflowConsumer.make({ queue: "print.queue", handler: nothing }))
      assert.match(error.message, /No stage of the workflow has the queue print\.queue/)
    }).pipe(Effect.provide(desk({ topology: workflow() })))
  )

  it.effect("knows a message without an id by the same one in every attempt", () =>
    Effect.gen(function* () {
      const ids: Array<string> = []
      yield* atWork(
        WorkflowConsumer.make({
          stage: "write",
          retryPolicy: new RetryPolicy({ max_retries: 1, delay_ms: 1000 }),
          handler: WorkflowHandler.make(({ message_id }) => {
            ids.push(message_id)
            return Effect.fail("x")
          })
        })
      )
      yield* sendBytes("write.queue", '{"task_id":"t1","stage":"write"}')
      yield* sendBytes("write.queue", '{"task_id":"t2","stage":"write"}')
      yield* pass("1 second")
      const [one, other, ...again] = ids
      assert.match(String(one), /^[0-9a-f]{32}$/)
      assert.notStrictEqual(one, other)
      assert.deepStrictEqual(again, [one, other])
    }).pipe(Effect.scoped, Effect.provide(desk({ topology: workflow() })))
  )

  it.effect("takes the names of its aliases", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      yield* atWork(
        WorkflowConsumer.make({
          stage: "write",
          handler: WorkflowHandler.make(({ action, task_id }) => Effect.sync(() => seen.push(`${task_id} ${action}`))),
          aliasConfig: new ContractAliasConfig({ field_aliases: { action: "step" } })
        })
      )
      yield* sendBytes("write.queue", '{"documentId":7,"step":"draft","stage":"write"}')
      yield* settleDown
      assert.deepStrictEqual(seen, ["7 draft"])
    }).pipe(Effect.scoped, Effect.provide(desk({ topology: workflow() })))
  )

  describe("a typed handler", () => {
    const handler = (seen: Array<unknown>) =>
      WorkflowHandler.byAction({
        draft: WorkflowHandler.withPayload(Schema.Struct({ pages: Schema.Int }), ({ payload }) =>
          Effect.sync(() => seen.push(payload.pages + 1))
        ),
        check: WorkflowHandler.make(({ payload }) => Effect.sync(() => seen.push(payload)))
      })

    it.effect("gets the payload of its action by its schema", () =>
      Effect.gen(function* () {
        const seen: Array<unknown> = []
        yield* atWork(WorkflowConsumer.make({ stage: "write", handler: handler(seen) }))
        yield* send("write", { action: "draft", payload: { pages: 1 } })
        yield* send("write", { action: "check", payload: { any: true } })
        yield* settleDown
        assert.deepStrictEqual(seen, [2, { any: true }])
      }).pipe(Effect.scoped, Effect.provide(desk({ topology: workflow() })))
    )

    it.effect("does not see other actions and payloads, which are dead-lettered without a retry", () => {
      const observed = observer()
      return Effect.gen(function* () {
        const seen: Array<unknown> = []
        const retryPolicy = new RetryPolicy()
        yield* atWork(
          WorkflowConsumer.make({ stage: "write", handler: handler(seen), retryPolicy, observationSink: observed.sink })
        )
        yield* send("write", { action: "draft", payload: { pages: "secret" } })
        yield* send("write", { action: "print" })
        yield* send("write")
        yield* settleDown
        assert.deepStrictEqual(seen, [])
        assert.deepStrictEqual(yield* reasonsIn("write.queue.dlq"), [
          ["payload_schema_violation", "MessageRefused"],
          ["unsupported_action", "MessageRefused"],
          ["unsupported_action", "MessageRefused"]
        ])
        const said = observed
          .of("WorkflowStageFailed")
          .map((fields) => "exception_message" in fields && fields.exception_message)
        assert.deepStrictEqual(said, [
          "The payload does not match the schema of stage write: payload.pages must be number.",
          "Stage write does not accept the action print. Publish one of draft, check, or add a handler.",
          "Stage write does not accept a message without an action. Publish one of draft, check, or add a handler."
        ])
      }).pipe(Effect.scoped, Effect.provide(desk({ topology: workflow() })))
    })

    it.effect("has its own services", () => {
      class Library extends Context.Service<Library, { readonly title: string }>()("test/Library") {}
      return Effect.gen(function* () {
        const seen: Array<string> = []
        yield* atWork(
          WorkflowConsumer.make({
            stage: "write",
            handler: WorkflowHandler.make(() => Effect.map(Library, ({ title }) => seen.push(title)))
          })
        )
        yield* send("write")
        yield* settleDown
        assert.deepStrictEqual(seen, ["Moby-Dick"])
      }).pipe(
        Effect.scoped,
        Effect.provide(Layer.merge(desk({ topology: workflow() }), Layer.succeed(Library, { title: "Moby-Dick" })))
      )
    })
  })

  describe("a hand-over", () => {
    const handingOver = (handOver: (context: WorkflowContext) => Effect.Effect<unknown, unknown>) =>
      WorkflowHandler.make((_, context) => handOver(context))

    it.effect("reaches the next stage as a new message of the same task", () => {
      const observed = observer()
      return Effect.gen(function* () {
        yield* atWork(
          WorkflowConsumer.make({
            stage: "outline",
            handler: handingOver(({ publishToStage }) =>
              publishToStage("write", { action: "draft", payload: { pages: 3 }, meta: { by: "outline" }, priority: 9 })
            ),
            observationSink: observed.sink
          })
        )
        yield* send("outline", { message_id: "m1", correlation_id: "c1", priority: 2, meta: { from: "client" } })
        yield* settleDown
        const [letter, ...others] = yield* letters("write.queue")
        assert.deepStrictEqual(others, [])
        const messageId = String(letter?.properties.headers?.["message_id"])
        assert.match(messageId, /^[0-9a-f]{32}$/)
        assert.deepStrictEqual(letter, {
          exchange: "workflow",
          routingKey: "writer.write.in",
          body: {
            task_id: "t1",
            message_id: messageId,
            correlation_id: "c1",
            stage: "write",
            origin_stage: "outline",
            action: "draft",
            payload: { pages: 3 },
            meta: { by: "outline" },
            priority: 9,
            spec_version: "1.0"
          },
          properties: {
            contentType: "application/json",
            persistent: true,
            correlationId: "c1",
            priority: 9,
            headers: { task_id: "t1", message_id: messageId, stage: "write", origin_stage: "outline" }
          }
        })
        assert.deepStrictEqual(observed.of("WorkflowMessagePublished"), [
          {
            consumer_name: "svc-workflow-consumer",
            queue_name: "outline.queue",
            stage: "write",
            routing_key: "writer.write.in",
            task_id: "t1",
            message_id: messageId,
            origin_stage: "outline",
            correlation_id: "c1"
          }
        ])
      }).pipe(Effect.scoped, Effect.provide(desk({ topology: workflow({ workflow_max_priority: 9 }) })))
    })

    it.effect("goes by a routing key as well, and does not inherit the priority", () => {
      const observed = observer()
      return Effect.gen(function* () {
        yield* atWork(
          WorkflowConsumer.make({
            stage: "outline",
            handler: handingOver(({ publishWorkflowMessage }) =>
              publishWorkflowMessage("writer.legal.urgent", { payload: {} })
            ),
            observationSink: observed.sink
          })
        )
        yield* send("outline", { priority: 7 })
        yield* settleDown
        const [letter] = yield* letters("write.queue")
        assert.strictEqual(letter?.routingKey, "writer.legal.urgent")
        assert.notProperty(letter?.properties, "priority")
        assert.deepInclude(observed.of("WorkflowMessagePublished")[0], {
          stage: "write",
          routing_key: "writer.legal.urgent"
        })
      }).pipe(Effect.scoped, Effect.provide(desk({ topology: workflow() })))
    })

    it.effect("is before the messages of lower priority that wait in the inbox", () =>
      Effect.gen(function* () {
        const seen: Array<unknown> = []
        for (const priority of [1, 5, undefined, 9]) yield* send("write", { priority, payload: { priority } })
        yield* atWork(
          WorkflowConsumer.make({
            stage: "write",
            handler: WorkflowHandler.make(({ payload }) => Effect.sync(() => seen.push(payload["priority"])))
          })
        )
        yield* settleDown
        assert.deepStrictEqual(seen, [9, 5, 1, undefined])
      }).pipe(Effect.scoped, Effect.provide(desk({ topology: workflow({ workflow_max_priority: 9 }) })))
    )

    it.effect("that a contract forbids fails, and is the handler's to answer for", () =>
      Effect.gen(function* () {
        const reasons: Array<unknown> = []
        yield* atWork(
          WorkflowConsumer.make({
            stage: "write",
            handler: handingOver(({ publishToStage }) =>
              Effect.catchTag(publishToStage("plan", { payload: {} }), "ContractError", ({ reason }) =>
                Effect.sync(() => reasons.push(reason))
              )
            )
          })
        )
        yield* send("write")
        yield* settleDown
        assert.deepStrictEqual(reasons, ["terminal_stage_handoff"])
        assert.strictEqual(yield* ready("plan.queue"), 0)
      }).pipe(Effect.scoped, Effect.provide(desk({ topology: contracted({ terminal: true }) })))
    )

    it.effect("from several stages into one is worked on there (fan-in)", () =>
      Effect.gen(function* () {
        const origins: Array<string | undefined> = []
        const toWriter = handingOver(({ publishToStage }) => publishToStage("write", { payload: {} }))
        yield* atWork(WorkflowConsumer.make({ stage: "outline", handler: toWriter }))
        yield* atWork(WorkflowConsumer.make({ stage: "research", handler: toWriter }))
        yield* atWork(
          WorkflowConsumer.make({
            stage: "write",
            handler: WorkflowHandler.make(({ origin_stage }) => Effect.sync(() => origins.push(origin_stage)))
          })
        )
        const { publishToEntry } = yield* BrokerClient
        yield* publishToEntry({ task_id: "t1" }, "start")
        yield* send("research")
        yield* settleDown
        assert.deepStrictEqual(origins.sort(), ["outline", "research"])
      }).pipe(Effect.scoped, Effect.provide(desk({ topology: workflow() })))
    )
  })

  describe("the context", () => {
    it.effect("publishes statuses of its task, and of others by the client", () =>
      Effect.gen(function* () {
        yield* atWork(
          WorkflowConsumer.make({
            stage: "write",
            handler: WorkflowHandler.make((_, { client, publishStatus }) =>
              Effect.andThen(
                publishStatus("searching", { message: "on it", meta: { n: 1 }, result: { hits: 2 }, event_id: "e1" }),
                client.publishStatus({ task_id: "parent", status: "waiting" })
              )
            )
          })
        )
        yield* send("write", { correlation_id: "c1" })
        yield* settleDown
        const [own, other] = (yield* letters("status.queue")).map(({ body }) => body)
        assert.deepInclude(own, {
          task_id: "t1",
          status: "searching",
          message: "on it",
          meta: { n: 1 },
          result: { hits: 2 },
          correlation_id: "c1",
          event_id: "e1"
        })
        assert.deepInclude(other, { task_id: "parent", correlation_id: "parent" })
      }).pipe(Effect.scoped, Effect.provide(desk({ topology: workflow() })))
    )

    it.effect("tells of the delivery", () =>
      Effect.gen(function* () {
        const seen: Array<unknown> = []
        yield* atWork(
          WorkflowConsumer.make({
            stage: "write",
            consumerName: "writer-1",
            retryPolicy: new RetryPolicy({ max_retries: 2, delay_ms: 1000 }),
            handler: WorkflowHandler.make((_, context) => {
              const { consumerName, correlationId, headers, maxRetries, redelivered, retryAttempt } = context
              seen.push({
                consumerName,
                correlationId,
                maxRetries,
                redelivered,
                retryAttempt,
                tenant: headers["tenant"]
              })
              return retryAttempt === 0 ? Effect.fail("once more") : Effect.void
            })
          })
        )
        const { publishToStage } = yield* BrokerClient
        yield* publishToStage({ task_id: "t1" }, "write", { headers: { tenant: "a" } })
        yield* pass("1 second")
        const told = {
          consumerName: "writer-1",
          correlationId: "t1",
          maxRetries: 2,
          redelivered: false,
          retryAttempt: 0,
          tenant: "a"
        }
        assert.deepStrictEqual(seen, [told, { ...told, retryAttempt: 1 }])
      }).pipe(Effect.scoped, Effect.provide(desk({ topology: workflow() })))
    )
  })

  describe("a failure", () => {
    it.effect("is retried after the delay, and dead-lettered at last, with its statuses", () => {
      const observed = observer()
      return Effect.gen(function* () {
        const attempts: Array<number> = []
        yield* atWork(
          WorkflowConsumer.make({
            stage: "write",
            handler: failing(new Error("no ink"), attempts),
            retryPolicy: new RetryPolicy({ max_retries: 2 }),
            retryStatuses: new RetryStatusConfig({ enabled: true }),
            observationSink: observed.sink
          })
        )
        yield* send("write", { message_id: "m1", correlation_id: "c1" })
        yield* pass("29 seconds")
        assert.deepStrictEqual(attempts, [0])
        yield* pass("1 second")
        assert.deepStrictEqual(attempts, [0, 1])
        yield* pass("30 seconds")
        assert.deepStrictEqual(attempts, [0, 1, 2])
        const [dead, ...others] = yield* letters("write.queue.dlq")
        assert.deepStrictEqual(others, [])
        assert.deepInclude(dead?.body, { task_id: "t1", message_id: "m1" })
        assert.deepInclude(dead?.properties.headers, {
          task_id: "t1",
          message_id: "m1",
          "x-svc-retry-attempt": 2,
          "x-svc-max-retries": 2,
          "x-svc-source-queue": "write.queue",
          "x-svc-failure-reason": "handler_error",
          "x-svc-exception-type": "Error"
        })
        assert.deepStrictEqual(
          (yield* letters("status.queue")).map(({ body }) => {
            const { message, meta, status, task_id } = Schema.decodeUnknownSync(Told)(body)
            return [task_id, status, message, meta]
          }),
          [
            ["t1", "retrying", "Retry 1/2 is scheduled: no ink", { retry_attempt: 1, max_retries: 2, stage: "write" }],
            ["t1", "retrying", "Retry 2/2 is scheduled: no ink", { retry_attempt: 2, max_retries: 2, stage: "write" }],
            ["t1", "failed", "no ink", { retry_attempt: 2, max_retries: 2, stage: "write" }]
          ]
        )
        const round = ["WorkflowMessageReceived", "WorkflowStageFailed"]
        assert.deepStrictEqual(observed.types(), [
          "WorkflowStageStarted",
          ...[...round, "ConsumerRetryScheduled"],
          ...[...round, "ConsumerRetryScheduled"],
          ...[...round, "ConsumerDeadLetterPublished"]
        ])
        assert.deepInclude(observed.of("WorkflowStageFailed")[0], {
          task_id: "t1",
          message_id: "m1",
          exception_type: "Error",
          exception_message: "no ink",
          requeue: false
        })
        assert.deepStrictEqual(observed.of("ConsumerRetryScheduled")[1], {
          consumer_name: "svc-workflow-consumer",
          task_id: "t1",
          queue_name: "write.queue.retry.30000ms.quorum",
          source_queue_name: "write.queue",
          retry_attempt: 2,
          max_retries: 2,
          reason: "handler_error",
          correlation_id: "c1",
          task_type: null
        })
      }).pipe(Effect.scoped, Effect.provide(desk({ topology: workflow() })))
    })

    it.effect("without a policy is rejected to the dead-letter exchange", () =>
      Effect.gen(function* () {
        const broker = yield* Broker
        yield* (yield* BrokerClient).initialize
        yield* broker.declare({
          exchanges: [],
          queues: [{ name: "dead" }],
          bindings: [{ exchange: "dlx", queue: "dead", routingKey: "" }]
        })
        yield* atWork(WorkflowConsumer.make({ stage: "write", handler: failing(new Error("no ink")) }))
        yield* send("write")
        yield* sendBytes("write.queue", "{")
        yield* settleDown
        assert.deepStrictEqual(yield* ready("write.queue"), 0)
        assert.strictEqual(yield* ready("dead"), 2)
      }).pipe(Effect.scoped, Effect.provide(desk({ topology: workflow({ dead_letter_exchange: "dlx" }) })))
    )

    it.effect("by the stage's own count and delay, also where the consumer has no policy", () =>
      Effect.gen(function* () {
        const attempts: Array<number> = []
        yield* atWork(WorkflowConsumer.make({ stage: "write", handler: failing("x", attempts) }))
        yield* send("write")
        yield* pass("2 seconds")
        yield* pass("2 seconds")
        assert.deepStrictEqual(attempts, [0, 1])
        assert.deepStrictEqual(yield* reasonsIn("write.queue.dlq"), [["handler_error", "string"]])
      }).pipe(Effect.scoped, Effect.provide(desk({ topology: contracted({ max_retries: 1, retry_delay_ms: 2000 }) })))
    )

    it.effect("that says it is final is not retried", () =>
      Effect.gen(function* () {
        class NoSuchBook extends Schema.TaggedError<NoSuchBook>()("NoSuchBook", {}) {
          readonly retryable = false
        }
        yield* atWork(
          WorkflowConsumer.make({
            stage: "write",
            handler: failing(new NoSuchBook()),
            retryPolicy: new RetryPolicy()
          })
        )
        yield* send("write")
        yield* settleDown
        assert.deepStrictEqual(yield* reasonsIn("write.queue.dlq"), [["handler_error", "NoSuchBook"]])
      }).pipe(Effect.scoped, Effect.provide(desk({ topology: workflow() })))
    )

    it.effect("to end in time is retried as stage_timeout, and the handler is interrupted", () =>
      Effect.gen(function* () {
        const interrupted: Array<number> = []
        const hanging = WorkflowHandler.make((_, { retryAttempt }) =>
          Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted.push(retryAttempt)))
        )
        yield* atWork(
          WorkflowConsumer.make({
            stage: "write",
            handler: hanging,
            retryPolicy: new RetryPolicy({ max_retries: 1, delay_ms: 1000 })
          })
        )
        yield* send("write")
        yield* pass("5 seconds")
        assert.deepStrictEqual(interrupted, [0])
        yield* pass("1 second")
        yield* pass("5 seconds")
        assert.deepStrictEqual(interrupted, [0, 1])
        assert.deepStrictEqual(yield* reasonsIn("write.queue.dlq"), [["stage_timeout", "StageTimeout"]])
      }).pipe(Effect.scoped, Effect.provide(desk({ topology: contracted({ timeout_seconds: 5 }) })))
    )

    it.effect("to publish the retry gives the message back, so that nothing is lost", () => {
      const observed = observer()
      return Effect.gen(function* () {
        const server = yield* BrokerMemory.BrokerServer
        const attempts: Array<number> = []
        yield* atWork(
          WorkflowConsumer.make({
            stage: "write",
            handler: failing("x", attempts),
            retryPolicy: new RetryPolicy({ max_retries: 1, delay_ms: 1000 }),
            observationSink: observed.sink
          })
        )
        yield* send("write")
        yield* server.block("low on memory")
        yield* pass("1 minute")
        yield* server.unblock
        yield* pass("1 minute")
        // twice where the first publish was unanswered, and taken
        assert.isAtLeast((yield* letters("write.queue.dlq")).length, 1)
        assert.strictEqual(yield* ready("write.queue"), 0)
        const lost = observed.of("WorkflowStageFailed").filter((fields) => "requeue" in fields && fields.requeue)
        assert.isAtLeast(lost.length, 1)
      }).pipe(Effect.scoped, Effect.provide(desk({ topology: workflow() })))
    })
  })

  it.effect("dead-letters what it cannot read, by reason, and tells no status of it", () => {
    const observed = observer()
    return Effect.gen(function* () {
      yield* atWork(
        WorkflowConsumer.make({
          stage: "write",
          handler: nothing,
          retryPolicy: new RetryPolicy(),
          retryStatuses: new RetryStatusConfig({ enabled: true }),
          observationSink: observed.sink
        })
      )
      for (const bytes of ["{", Uint8Array.of(0x7b, 0xff, 0x7d), "[]", '{"task_id":"t1"}']) {
        yield* sendBytes("write.queue", bytes)
      }
      yield* settleDown
      const broker = yield* Broker
      assert.strictEqual(Option.getOrThrow(yield* broker.inspect("write.queue.dlq")).messages, 4)
      assert.deepStrictEqual(
        observed
          .of("ConsumerDeadLetterPublished")
          .map((fields) =>
            "reason" in fields && "retry_attempt" in fields ? [fields.reason, fields.retry_attempt] : []
          ),
        [
          ["malformed_json", 0],
          ["malformed_json", 0],
          ["invalid_envelope", 0],
          ["invalid_envelope", 0]
        ]
      )
      assert.deepStrictEqual(yield* letters("status.queue"), [])
      assert.notInclude(observed.types(), "WorkflowMessageReceived")
    }).pipe(Effect.scoped, Effect.provide(desk({ topology: workflow() })))
  })

  it.effect("does not take actions and payloads that its contract does not accept", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      yield* atWork(
        WorkflowConsumer.make({
          stage: "write",
          handler: WorkflowHandler.make(({ payload }) => Effect.sync(() => seen.push(payload))),
          retryPolicy: new RetryPolicy()
        })
      )
      const message = (action: string, payload: unknown) =>
        sendBytes("write.queue", JSON.stringify({ task_id: "t1", stage: "write", action, payload }))
      yield* message("print", {})
      yield* message("draft", { title: "a", colour: "red" })
      yield* message("draft", { title: "a" })
      yield* settleDown
      assert.deepStrictEqual(seen, [{ title: "a" }])
      assert.deepStrictEqual(yield* reasonsIn("write.queue.dlq"), [
        ["unsupported_action", "ContractError"],
        ["payload_schema_violation", "ContractError"]
      ])
    }).pipe(
      Effect.scoped,
      Effect.provide(
        desk({
          topology: contracted({
            accepted_actions: [{ action: "draft", payload: { name: "Draft", required_fields: ["title"] } }]
          })
        })
      )
    )
  )

  it.effect("works on as many messages at once as the stage's max_inflight says, unless it says so itself", () =>
    Effect.gen(function* () {
      const gate = yield* Latch.make()
      const started: Array<string> = []
      const waiting = (name: string) =>
        WorkflowHandler.make(() => {
          started.push(name)
          return Latch.await(gate)
        })
      for (let n = 0; n < 8; n++) yield* send("write")
      const first = yield* atWork(WorkflowConsumer.make({ stage: "write", handler: waiting("contract") }))
      assert.deepStrictEqual(started, ["contract", "contract", "contract"])
      yield* atWork(WorkflowConsumer.make({ stage: "write", handler: waiting("own"), concurrency: 2 }))
      assert.deepStrictEqual(started.slice(3), ["own", "own"])
      yield* Latch.open(gate)
      yield* first.stop
    }).pipe(Effect.scoped, Effect.provide(desk({ topology: contracted({ max_inflight: 3 }) })))
  )

  it.effect("waits for what it works on when it stops, and takes nothing more", () =>
    Effect.gen(function* () {
      const gate = yield* Latch.make()
      const ended: Array<string> = []
      const { stop } = yield* atWork(
        WorkflowConsumer.make({
          stage: "write",
          handler: WorkflowHandler.make(({ task_id }) =>
            Effect.andThen(
              Latch.await(gate),
              Effect.sync(() => ended.push(task_id))
            )
          )
        })
      )
      for (const task_id of ["a", "b"]) yield* send("write", { task_id })
      yield* settleDown
      const stopping = yield* Effect.forkChild(stop)
      yield* settleDown
      yield* Latch.open(gate)
      yield* Fiber.join(stopping)
      assert.deepStrictEqual(ended, ["a"])
      assert.strictEqual(yield* ready("write.queue"), 1)
    }).pipe(Effect.scoped, Effect.provide(desk({ topology: workflow() })))
  )

  it.effect("is refused where the contract and the retry policy do not go together", () =>
    Effect.gen(function* () {
      const retryPolicy = new RetryPolicy({ delay_ms: 1_000, backoff: { max_delay_ms: 5_000 } })
      const error = yield* Effect.flip(WorkflowConsumer.make({ stage: "write", handler: nothing, retryPolicy }))
      assert.deepInclude(error, { _tag: "SettingsError" })
      assert.match(error.message, /stage contract: backoff.max_delay_ms must be an integer from 30000/)
    }).pipe(Effect.provide(desk({ topology: contracted({ retry_delay_ms: 30_000 }) })))
  )

  describe("a stage with dedup_key_fields", () => {
    const topology = contracted({ dedup_key_fields: ["request"], max_inflight: 10 })
    const deduplicating = (seen: Array<string>, gate: Latch.Latch) =>
      WorkflowConsumer.make({
        stage: "write",
        retryPolicy: new RetryPolicy({ max_retries: 1, delay_ms: 1000 }),
        handler: WorkflowHandler.make(({ message_id }) => {
          seen.push(message_id)
          return Latch.await(gate)
        })
      })

    it.effect("is not worked on without somebody who knows what is in flight", () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(WorkflowConsumer.make({ stage: "write", handler: nothing }))
        assert.match(error.message, /dedup_key_fields require the service StageDedup/)
      }).pipe(Effect.provide(desk({ topology })))
    )

    it.effect("dead-letters a message whose fields are nested too deeply to be compared", () =>
      Effect.gen(function* () {
        yield* atWork(deduplicating([], yield* Latch.make()))
        const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`
        yield* sendBytes("write.queue", `{"task_id":"t1","stage":"write","payload":{"request":${deep}}}`)
        yield* settleDown
        assert.deepStrictEqual(yield* reasonsIn("write.queue.dlq"), [["payload_schema_violation", "ContractError"]])
      }).pipe(Effect.scoped, Effect.provide(Layer.merge(desk({ topology }), StageDedup.layerMemory)))
    )

    it.effect("dead-letters a message that is the same work as one in flight, and takes it later", () =>
      Effect.gen(function* () {
        const gate = yield* Latch.make()
        const seen: Array<string> = []
        yield* atWork(deduplicating(seen, gate))
        yield* send("write", { message_id: "m1", payload: { request: 1, page: 1 } })
        yield* send("write", { message_id: "m2", payload: { request: 1, page: 2 } })
        yield* send("write", { message_id: "m3", payload: { request: 2 } })
        yield* send("write", { message_id: "m4", task_id: "t2", payload: { request: 1 } })
        yield* settleDown
        assert.deepStrictEqual(seen, ["m1", "m3", "m4"])
        const dead = yield* letters("write.queue.dlq")
        assert.deepStrictEqual(
          dead.map(({ properties: { headers = {} } }) => [headers["message_id"], headers["x-svc-failure-reason"]]),
          [["m2", "dedup_conflict"]]
        )
        yield* Latch.open(gate)
        yield* settleDown
        yield* send("write", { message_id: "m5", payload: { request: 1 } })
        yield* settleDown
        assert.deepStrictEqual(seen, ["m1", "m3", "m4", "m5"])
      }).pipe(Effect.scoped, Effect.provide(Layer.merge(desk({ topology }), StageDedup.layerMemory)))
    )

    it.effect("takes two numbers for two pieces of work also where JavaScript has but one", () =>
      Effect.gen(function* () {
        const gate = yield* Latch.make()
        const seen: Array<string> = []
        yield* atWork(deduplicating(seen, gate))
        const order = (id: string, number: string) =>
          sendBytes(
            "write.queue",
            `{"task_id":"t1","stage":"write","message_id":"${id}","payload":{"request":${number}}}`
          )
        yield* order("m1", "9007199254740992")
        yield* order("m2", "9007199254740993")
        yield* order("m3", "9007199254740993")
        yield* settleDown
        assert.deepStrictEqual(seen, ["m1", "m2"])
        assert.deepStrictEqual(yield* reasonsIn("write.queue.dlq"), [["dedup_conflict", "DedupConflict"]])
      }).pipe(Effect.scoped, Effect.provide(Layer.merge(desk({ topology }), StageDedup.layerMemory)))
    )

    /** A store whose releases fail so often: Redis is away. */
    const unreleased = (failures: number) =>
      Layer.effect(
        StageDedup,
        Effect.map(StageDedup, (dedup) => {
          let left = failures
          const away = new RedisError({ operation: "script", retryable: true, cause: new Error("Redis is away") })
          const release: typeof dedup.release = (claim) =>
            Effect.suspend(() => (left-- > 0 ? Effect.fail(away) : dedup.release(claim)))
          return StageDedup.of({ ...dedup, release })
        })
      ).pipe(Layer.provide(StageDedup.layerMemory))

    it.effect("releases its claim later where Redis is away at first, and is retried after that", () =>
      Effect.gen(function* () {
        const seen: Array<string> = []
        yield* atWork(
          WorkflowConsumer.make({
            stage: "write",
            retryPolicy: new RetryPolicy({ max_retries: 1, delay_ms: 1_000 }),
            handler: WorkflowHandler.make(({ message_id }, { retryAttempt }) => {
              seen.push(`${message_id} ${retryAttempt}`)
              return retryAttempt === 0 ? Effect.fail("x") : Effect.void
            })
          })
        )
        yield* send("write", { message_id: "m1", payload: { request: 1 } })
        yield* pass("30 seconds")
        yield* pass("1 second")
        assert.deepStrictEqual(seen, ["m1 0", "m1 1"])
        yield* send("write", { message_id: "m2", payload: { request: 1 } })
        yield* pass("1 second")
        yield* pass("1 second")
        assert.deepStrictEqual(seen, ["m1 0", "m1 1", "m2 0", "m2 1"])
        assert.deepStrictEqual(yield* letters("write.queue.dlq"), [])
      }).pipe(Effect.scoped, Effect.provide(Layer.merge(desk({ topology }), unreleased(3))))
    )

    it.effect("lets retries and replays of a message claim again what was never released", () =>
      Effect.gen(function* () {
        const seen: Array<number> = []
        yield* atWork(
          WorkflowConsumer.make({
            stage: "write",
            retryPolicy: new RetryPolicy({ max_retries: 1, delay_ms: 1_000 }),
            handler: WorkflowHandler.make((_, { retryAttempt }) => {
              seen.push(retryAttempt)
              return Effect.fail("x")
            })
          })
        )
        yield* send("write", { message_id: "m1", payload: { request: 1 } })
        for (let n = 0; n < 3; n++) yield* pass("2 minutes")
        assert.deepStrictEqual(seen, [0, 1])
        assert.deepStrictEqual(yield* reasonsIn("write.queue.dlq"), [["handler_error", "string"]])
        const headers = { message_id: "m1", "x-svc-retry-attempt": 0, "x-svc-replayed-from-dlq": true }
        const client = yield* BrokerClient
        const body = '{"task_id":"t1","stage":"write","message_id":"m1","payload":{"request":1}}'
        yield* client.publishRawToQueue("write.queue", Buffer.from(body), { headers })
        for (let n = 0; n < 3; n++) yield* pass("2 minutes")
        assert.deepStrictEqual(seen, [0, 1, 0, 1])
        assert.deepStrictEqual(yield* reasonsIn("write.queue.dlq"), [["handler_error", "string"]])
      }).pipe(Effect.scoped, Effect.provide(Layer.merge(desk({ topology }), unreleased(Infinity))))
    )

    it.effect("works again on a message whose worker lost its connection, and on one that failed", () =>
      Effect.gen(function* () {
        const seen: Array<string> = []
        yield* atWork(
          WorkflowConsumer.make({
            stage: "write",
            retryPolicy: new RetryPolicy({ max_retries: 1, delay_ms: 1000 }),
            handler: WorkflowHandler.make((_, { redelivered, retryAttempt }) => {
              seen.push(`${retryAttempt}${redelivered ? "*" : ""}`)
              return seen.length === 1 ? Effect.never : retryAttempt === 0 ? Effect.fail("x") : Effect.void
            })
          })
        )
        yield* send("write", { payload: { request: 1 } })
        yield* settleDown
        yield* (yield* BrokerMemory.BrokerServer).drop()
        yield* pass("2 seconds")
        yield* pass("2 seconds")
        assert.deepStrictEqual(seen, ["0", "0*", "1"])
        assert.deepStrictEqual(yield* letters("write.queue.dlq"), [])
      }).pipe(Effect.scoped, Effect.provide(Layer.merge(desk({ topology }), StageDedup.layerMemory)))
    )
  })
})

const Told = Schema.Struct({
  task_id: Schema.String,
  status: Schema.String,
  message: Schema.String,
  meta: Schema.Record(Schema.String, Schema.Unknown)
})
