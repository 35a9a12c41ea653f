import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Logger, Option, References, Result, Tracer } from "effect"
import { TestClock } from "effect/testing"
import * as BrokerMemory from "../../../layers/BrokerMemory.ts"
import { BrokerClient, type ClientOptions } from "../../../src/messaging/publish/BrokerClient.ts"
import { ContractAliasConfig } from "../../../src/messaging/topology/Aliases.ts"
import { RetryPolicy } from "../../../src/messaging/topology/RetryPolicy.ts"
import { Broker } from "../../../src/services/Broker.ts"
import { letters } from "../Letters.ts"
import { by, routed, routedSharded, sharded, shared, workflow } from "../SampleTopologies.ts"

const { BrokerServer } = BrokerMemory

const using = (options: ClientOptions) =>
  BrokerClient.layer(options).pipe(
    Layer.provideMerge(BrokerMemory.layerConnection()),
    Layer.provideMerge(BrokerMemory.layerServer())
  )

/** Tells how many of what it names lie in the queue. */
const waiting = (queue: string) =>
  Effect.flatMap(BrokerClient, ({ inspectQueue }) =>
    Effect.map(inspectQueue(queue), (found) => Option.map(found, ({ messages }) => messages))
  )

describe("BrokerClient", () => {
  describe("initialize", () => {
    it.effect("declares the topology, and does nothing when it is called again", () =>
      Effect.gen(function* () {
        const { initialize, inspectQueue } = yield* BrokerClient
        assert.isTrue(Option.isNone(yield* inspectQueue("tasks.queue")))
        yield* Effect.all([initialize, initialize, initialize], { concurrency: "unbounded" })
        assert.deepStrictEqual(yield* inspectQueue("tasks.queue"), Option.some({ messages: 0, consumers: 0 }))
        yield* (yield* Broker).remove({ queues: ["tasks.queue"] })
        yield* initialize
        assert.isTrue(Option.isNone(yield* inspectQueue("tasks.queue")))
      }).pipe(Effect.provide(using({ topology: shared() })))
    )

    it.effect("is done by the first publish", () =>
      Effect.gen(function* () {
        const { publishTask } = yield* BrokerClient
        yield* publishTask({ task_id: "t1" })
        assert.strictEqual((yield* letters("tasks.queue")).length, 1)
      }).pipe(Effect.provide(using({ topology: shared() })))
    )

    it.effect("can be tried again after the broker was away", () =>
      Effect.gen(function* () {
        const server = yield* BrokerServer
        const { initialize, publishTask } = yield* BrokerClient
        yield* server.cut()
        const trying = yield* Effect.forkChild(Effect.flip(initialize))
        yield* TestClock.adjust("6 seconds")
        assert.deepInclude(yield* Fiber.join(trying), { _tag: "BrokerError", reason: "unreachable" })
        yield* server.restore
        yield* TestClock.adjust("1 minute")
        yield* publishTask({ task_id: "t1" })
      }).pipe(Effect.provide(using({ topology: shared() })))
    )

    it.effect("refuses by name what this release of the broker would refuse", () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip((yield* BrokerClient).initialize)
        assert.match(error.message, /task_max_priority requires a classic queue before RabbitMQ 4\.0/)
      }).pipe(Effect.provide(using({ topology: shared({ task_queue_type: "quorum", task_max_priority: 9 }) })))
    )

    it.effect("names every queue that is there with other arguments, and the way out", () =>
      Effect.gen(function* () {
        const broker = yield* Broker
        yield* (yield* BrokerClient).initialize
        const changed = yield* BrokerClient.make({
          topology: shared({ tasks_message_ttl_ms: 1000, status_queue_ttl_ms: 5000 })
        })
        const error = yield* Effect.flip(changed.initialize)
        assert.match(error.message, /queue status\.queue exists and differs: .*x-expires/)
        assert.match(error.message, /queue tasks\.queue exists and differs: .*x-message-ttl.*another queue name/)
        assert.notMatch(error.message, /\.[.;]/)
        yield* broker.ping
      }).pipe(Effect.provide(using({ topology: shared() })))
    )

    it.effect("warns once about what the broker takes and does nothing with", () =>
      Effect.gen(function* () {
        const logged: Array<unknown> = []
        const logger = Logger.make(({ message }) => void logged.push(message))
        const { initialize } = yield* BrokerClient
        yield* Effect.andThen(initialize, initialize).pipe(
          Effect.provide(Logger.layer([logger])),
          Effect.provideService(References.MinimumLogLevel, "Warn")
        )
        assert.strictEqual(logged.length, 1)
        assert.match(String(logged[0]), /task_consumer_timeout_ms has no effect on classic queues \(RabbitMQ 3\.10/)
      }).pipe(Effect.provide(using({ topology: shared({ task_consumer_timeout_ms: 60_000 }) })))
    )

    it.effect("declares no queue in publish-only mode, and says so of a publish that nobody takes", () =>
      Effect.gen(function* () {
        const { initialize, inspectQueue, publishTask } = yield* BrokerClient
        yield* initialize
        assert.isTrue(Option.isNone(yield* inspectQueue("tasks.queue")))
        const error = yield* Effect.flip(publishTask({ task_id: "t1", task_type: "resize" }))
        assert.deepInclude(error, {
          _tag: "Unroutable",
          exchange: "tasks",
          routingKey: "resize",
          mayDuplicate: false,
          message:
            "No queue is bound to the exchange tasks with the routing key resize: start the worker that declares it, or correct the key."
        })
        yield* (yield* BrokerClient.make({ topology: routed() })).initialize
        yield* publishTask({ task_id: "t1", task_type: "resize" })
      }).pipe(Effect.provide(using({ topology: routed(), publishOnly: true })))
    )
  })

  describe("publishTask", () => {
    it.effect("sends what the specification says", () =>
      Effect.gen(function* () {
        const { publishTask } = yield* BrokerClient
        yield* TestClock.setTime(Date.UTC(2026, 3, 6, 10))
        const task = { task_id: "t1", payload: { url: null }, priority: 5, correlation_id: "c1", extra: [1] }
        yield* publishTask(task, { headers: { tenant: "a", task_id: "other" } })
        assert.deepStrictEqual(yield* letters("tasks.queue"), [
          {
            exchange: "tasks",
            routingKey: "tasks.key",
            body: { ...task, created_at: "2026-04-06T10:00:00Z", spec_version: "1.0" },
            properties: {
              contentType: "application/json",
              persistent: true,
              correlationId: "c1",
              priority: 5,
              headers: { task_id: "other", tenant: "a" }
            }
          }
        ])
      }).pipe(Effect.provide(using({ topology: shared({ task_max_priority: 9 }) })))
    )

    it.effect("takes the names of its aliases, and sends canonical ones", () =>
      Effect.gen(function* () {
        const { publishTask } = yield* BrokerClient
        yield* publishTask({ attempt_id: 7, kind: "resize", payload: { kind: "inner" } }, { aliased: true })
        const [letter] = yield* letters("tasks.queue")
        assert.deepInclude(letter?.body, { task_id: "7", task_type: "resize", payload: { kind: "inner" } })
        assert.strictEqual(letter?.routingKey, "resize")
      }).pipe(
        Effect.provide(
          using({
            topology: routed(),
            aliasConfig: new ContractAliasConfig({ field_aliases: { task_id: "attempt_id", task_type: "kind" } })
          })
        )
      )
    )

    it.effect("routes by task_type, trimmed", () =>
      Effect.gen(function* () {
        const { publishTask } = yield* BrokerClient
        yield* publishTask({ task_id: "t1", task_type: " rotate " })
        assert.deepInclude((yield* letters("tasks.queue"))[0], { exchange: "tasks", routingKey: "rotate" })
      }).pipe(Effect.provide(using({ topology: routed() })))
    )

    it.effect("rejects a task without task_type on a routed topology, before any broker is asked", () =>
      Effect.gen(function* () {
        yield* (yield* BrokerServer).cut()
        const { publishTask } = yield* BrokerClient
        for (const task_type of [undefined, null, "", " "]) {
          const error = yield* Effect.flip(publishTask({ task_id: "t1", task_type }))
          assert.deepInclude(error, { _tag: "InvalidPublish", reason: "task_type_required", field: "task_type" })
        }
      }).pipe(Effect.provide(using({ topology: routed() })))
    )

    it.effect("fails on the client's side for a priority above task_max_priority", () =>
      Effect.gen(function* () {
        const { publishTask } = yield* BrokerClient
        const error = yield* Effect.flip(publishTask({ task_id: "t1", priority: 10 }))
        assert.deepInclude(error, {
          reason: "priority_above_maximum",
          message: "priority is 10, but the queue allows at most 9 (task_max_priority)."
        })
        yield* publishTask({ task_id: "t1", priority: 9 })
        assert.deepStrictEqual(yield* waiting("tasks.queue"), Option.some(1))
      }).pipe(Effect.provide(using({ topology: shared({ task_max_priority: 9 }) })))
    )

    it.effect("names every mistake of a bad task at once, without its values", () =>
      Effect.gen(function* () {
        const { publishTask } = yield* BrokerClient
        const error = yield* Effect.flip(
          publishTask({ task_id: "", payload: ["secret"], priority: 256 }, { aliased: true })
        )
        assert.deepInclude(error, { _tag: "EnvelopeError", reason: "invalid_envelope", envelope: "task" })
        assert.match(error.message, /task_id.*payload.*priority/)
        assert.notMatch(error.message, /secret/)
      }).pipe(Effect.provide(using({ topology: shared() })))
    )

    it.effect("points to stages and entry routes on a workflow topology", () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip((yield* BrokerClient).publishTask({ task_id: "t1" }))
        assert.deepInclude(error, { reason: "only_workflow" })
        assert.match(error.message, /publishToStage.*publishToEntry/)
      }).pipe(Effect.provide(using({ topology: workflow() })))
    )
  })

  describe("a publish that is not confirmed", () => {
    it.effect("is not advised to be tried again where the message itself is at fault", () =>
      Effect.gen(function* () {
        const { publishRawToQueue } = yield* BrokerClient
        const error = yield* Effect.flip(publishRawToQueue("status.queue", Buffer.from("x"), { priority: 256 }))
        assert.deepInclude(error, { _tag: "PublishRefused", reason: "invalid", mayDuplicate: false })
        assert.match(error.message, /priority is 256.*not stored\. Publishing it again would fail in the same way/)
      }).pipe(Effect.provide(using({ topology: shared() })))
    )

    it.effect("was not stored when the broker refused it, and may be tried again", () =>
      Effect.gen(function* () {
        const { publishTask } = yield* BrokerClient
        yield* publishTask({ task_id: "t1" })
        const error = yield* Effect.flip(publishTask({ task_id: "t2" }))
        assert.deepInclude(error, { _tag: "PublishRefused", reason: "nacked", mayDuplicate: false })
        assert.match(error.message, /not stored\. It can be published again/)
      }).pipe(
        Effect.provide(
          using({
            topology: shared({
              task_queue_arguments_overrides: { "x-max-length": 1, "x-overflow": "reject-publish" }
            })
          })
        )
      )
    )

    it.effect("may have been stored when no answer came", () =>
      Effect.gen(function* () {
        const server = yield* BrokerServer
        const { initialize, publishTask } = yield* BrokerClient
        yield* initialize
        yield* server.freeze
        const publishing = yield* Effect.forkChild(Effect.flip(publishTask({ task_id: "t1" })))
        yield* TestClock.adjust("11 seconds")
        const error = yield* Fiber.join(publishing)
        assert.deepInclude(error, { _tag: "PublishUnknown", mayDuplicate: true })
        assert.match(error.message, /may duplicate/)
      }).pipe(Effect.provide(using({ topology: shared() })))
    )
  })

  describe("publishTasks", () => {
    const tasks = (count: number) => Array.from({ length: count }, (_, n) => ({ task_id: `t${n}`, priority: n % 2 }))

    it.effect("sends a message for each task, in their order", () =>
      Effect.gen(function* () {
        const { publishTasks } = yield* BrokerClient
        yield* publishTasks(tasks(600))
        const ids = (yield* letters("tasks.queue")).map(({ properties }) => properties.headers?.["task_id"])
        assert.deepStrictEqual(
          ids,
          tasks(600).map(({ task_id }) => task_id)
        )
        yield* publishTasks([])
      }).pipe(Effect.provide(using({ topology: shared() })))
    )

    it.effect("sends nothing when one of them is bad, and names it", () =>
      Effect.gen(function* () {
        const { initialize, publishTasks } = yield* BrokerClient
        yield* initialize
        const error = yield* Effect.flip(
          publishTasks([{ task_id: "t1" }, { task_id: "t2", payload: 5 }], { aliased: true })
        )
        assert.match(error.message, /tasks\[1\]\.payload/)
        assert.deepStrictEqual(yield* waiting("tasks.queue"), Option.some(0))
      }).pipe(Effect.provide(using({ topology: shared() })))
    )

    it.effect("stops after a failure, and says which were not confirmed and which not sent", () =>
      Effect.gen(function* () {
        const { publishTasks } = yield* BrokerClient
        const types = ["resize", "resize", "rotate", "resize", "resize"]
        const mixed = types.map((task_type, n) => ({ task_id: `t${n}`, task_type }))
        const error = yield* Effect.flip(publishTasks(mixed, { concurrency: 1 }))
        assert.strictEqual(error._tag, "TasksUnpublished")
        if (error._tag !== "TasksUnpublished") return
        assert.deepStrictEqual(
          error.failures.map(({ error, index }) => [index, error._tag]),
          [[2, "Unroutable"]]
        )
        assert.deepStrictEqual(error.unsent, [3, 4])
        assert.match(error.message, /Of 5 tasks, 1 failed and 2 were not sent\. Task 2: No queue .* rotate/)
        assert.deepStrictEqual(yield* waiting("tasks.queue"), Option.some(2))
      }).pipe(Effect.provide(using({ topology: routed({ task_types: ["resize"] }) })))
    )

    it.effect("sends one message for a batch envelope, with the priority that its tasks share", () =>
      Effect.gen(function* () {
        const { publishTasks } = yield* BrokerClient
        yield* TestClock.setTime(0)
        yield* publishTasks(
          [
            { task_id: "t1", priority: 3 },
            { documentId: 2, priority: 3 }
          ],
          { mode: "batch_envelope", batchId: "b1", meta: { by: "test" }, aliased: true }
        )
        const stamped = { payload: {}, created_at: "1970-01-01T00:00:00Z", priority: 3, spec_version: "1.0" }
        assert.deepStrictEqual(yield* letters("tasks.queue"), [
          {
            exchange: "tasks",
            routingKey: "tasks.key",
            body: {
              batch_id: "b1",
              tasks: [
                { task_id: "t1", ...stamped },
                { task_id: "2", ...stamped }
              ],
              meta: { by: "test" },
              created_at: "1970-01-01T00:00:00Z",
              spec_version: "1.0"
            },
            properties: {
              contentType: "application/json",
              persistent: true,
              correlationId: "b1",
              priority: 3,
              headers: { batch_id: "b1", batch_size: 2 }
            }
          }
        ])
      }).pipe(Effect.provide(using({ topology: shared({ task_max_priority: 9 }) })))
    )

    it.effect("rejects a batch envelope whose tasks have different priorities, or priorities and none", () =>
      Effect.gen(function* () {
        const { publishTasks } = yield* BrokerClient
        for (const priorities of [
          [1, 2],
          [1, undefined]
        ]) {
          const mixed = priorities.map((priority, n) => ({ task_id: `t${n}`, priority }))
          const error = yield* Effect.flip(publishTasks(mixed, { mode: "batch_envelope", batchId: "b1" }))
          assert.deepInclude(error, { _tag: "InvalidPublish", reason: "mixed_priorities" })
        }
      }).pipe(Effect.provide(using({ topology: shared() })))
    )

    it.effect("rejects a batch envelope without an id, without tasks, or of two task types", () =>
      Effect.gen(function* () {
        const { publishTasks } = yield* BrokerClient
        const one = { task_id: "t1", task_type: "resize" }
        const reasonOf = (effect: ReturnType<typeof publishTasks>) =>
          Effect.map(Effect.flip(effect), (error) => ("reason" in error ? error.reason : error._tag))
        const mode = "batch_envelope"
        assert.strictEqual(yield* reasonOf(publishTasks([one], { mode, batchId: " " })), "batch_id_required")
        assert.strictEqual(yield* reasonOf(publishTasks([], { mode, batchId: "b1" })), "empty_batch")
        // as JavaScript or a configuration may have it
        // @ts-expect-error
        assert.strictEqual(yield* reasonOf(publishTasks([one], { mode })), "batch_id_required")
        // @ts-expect-error
        const misnamed = yield* Effect.flip(publishTasks([one], { mode: "batch", batchId: "b1" }))
        assert.deepInclude(misnamed, { _tag: "InvalidPublish", reason: "mode", field: "mode" })
        assert.match(misnamed.message, /individual or batch_envelope/)
        // @ts-expect-error
        assert.strictEqual(yield* reasonOf(publishTasks([one], { batchId: "b1" })), "mode")
        const two = [one, { task_id: "t2", task_type: "rotate" }]
        assert.strictEqual(yield* reasonOf(publishTasks(two, { mode, batchId: "b1" })), "mixed_task_types")
      }).pipe(Effect.provide(using({ topology: routed() })))
    )
  })

  describe("workflows", () => {
    it.effect("publishes by an entry route, whose target becomes the stage", () =>
      Effect.gen(function* () {
        const { publishToEntry } = yield* BrokerClient
        yield* publishToEntry({ task_id: "t1", stage: "elsewhere", action: "plan", message_id: "m1" }, "again")
        assert.deepStrictEqual(yield* letters("outline.queue"), [
          {
            exchange: "workflow",
            routingKey: "replanner.outline.in",
            body: {
              task_id: "t1",
              message_id: "m1",
              stage: "outline",
              action: "plan",
              payload: {},
              meta: {},
              spec_version: "1.0",
              correlation_id: "t1"
            },
            properties: {
              contentType: "application/json",
              persistent: true,
              correlationId: "t1",
              headers: { task_id: "t1", message_id: "m1", stage: "outline" }
            }
          }
        ])
        const error = yield* Effect.flip(publishToEntry({ task_id: "t1" }, "finish"))
        assert.deepInclude(error, {
          reason: "unknown_entry",
          message: "The workflow has no entry route finish. Its entry routes are: start, again."
        })
      }).pipe(Effect.provide(using({ topology: workflow() })))
    )

    it.effect("publishes to a stage's inbox, from several stages into one (fan-in)", () =>
      Effect.gen(function* () {
        const { publishToStage } = yield* BrokerClient
        yield* publishToStage({ task_id: "t1", origin_stage: "outline", priority: 4 }, "write")
        yield* publishToStage({ task_id: "t1", origin_stage: "research" }, "write")
        const found = yield* letters("write.queue")
        assert.deepStrictEqual(
          found.map(({ properties, routingKey }) => [routingKey, properties.headers?.["origin_stage"]]),
          [
            ["writer.write.in", "outline"],
            ["writer.write.in", "research"]
          ]
        )
        assert.strictEqual(found[0]?.properties.priority, 4)
        const error = yield* Effect.flip(publishToStage({ task_id: "t1" }, "print"))
        assert.match(error.message, /no stage print\. Its stages are outline, research, write/)
      }).pipe(Effect.provide(using({ topology: workflow() })))
    )

    it.effect("publishes by any of the keys that one inbox is bound to", () =>
      Effect.gen(function* () {
        const { publishWorkflowMessage } = yield* BrokerClient
        for (const key of ["writer.write.in", "writer.legal.urgent"])
          yield* publishWorkflowMessage({ task_id: "t" }, key)
        assert.deepStrictEqual(
          (yield* letters("write.queue")).map(({ body, routingKey }) => [
            routingKey,
            typeof body === "object" && body !== null && "stage" in body && body.stage
          ]),
          [
            ["writer.write.in", "write"],
            ["writer.legal.urgent", "write"]
          ]
        )
        const error = yield* Effect.flip(publishWorkflowMessage({ task_id: "t" }, "nobody.in"))
        assert.deepInclude(error, { reason: "unroutable_key" })
      }).pipe(Effect.provide(using({ topology: workflow() })))
    )

    it.effect("gives every message an id of its own, and keeps a given one", () =>
      Effect.gen(function* () {
        const { publishToStage } = yield* BrokerClient
        for (const more of [{}, {}, { message_id: "mine" }]) yield* publishToStage({ task_id: "t", ...more }, "write")
        const [one, other, given] = (yield* letters("write.queue")).map(({ properties }) =>
          String(properties.headers?.["message_id"])
        )
        assert.match(String(one), /^[0-9a-f]{32}$/)
        assert.notStrictEqual(one, other)
        assert.strictEqual(given, "mine")
      }).pipe(Effect.provide(using({ topology: workflow() })))
    )

    it.effect("refuses a hand-over that a stage contract forbids", () =>
      Effect.gen(function* () {
        const { publishToStage } = yield* BrokerClient
        const reasonOf = (origin_stage: string | undefined, stage: string, action: string) =>
          Effect.map(Effect.result(publishToStage({ task_id: "t", origin_stage, action }, stage)), (result) =>
            Result.isSuccess(result) ? "sent" : "reason" in result.failure ? result.failure.reason : result.failure._tag
          )
        assert.strictEqual(yield* reasonOf("plan", "write", "draft"), "sent")
        assert.strictEqual(yield* reasonOf(undefined, "plan", "plan"), "sent")
        assert.strictEqual(yield* reasonOf("plan", "plan", "draft"), "forbidden_transition")
        assert.strictEqual(yield* reasonOf("write", "plan", "plan"), "terminal_stage_handoff")
        assert.strictEqual(yield* reasonOf("plan", "write", "print"), "unsupported_action")
      }).pipe(
        Effect.provide(
          using({
            topology: workflow({
              stages: [
                {
                  name: "plan",
                  queue: "plan.queue",
                  ...by("planner.plan.in"),
                  allowed_next_stages: ["write"],
                  produced_actions: [{ action: "draft" }]
                },
                { name: "write", queue: "write.queue", ...by("writer.write.in"), terminal: true }
              ],
              entry_routes: []
            })
          })
        )
      )
    )

    it.effect("checks a priority against workflow_max_priority", () =>
      Effect.gen(function* () {
        const { publishToStage } = yield* BrokerClient
        const error = yield* Effect.flip(publishToStage({ task_id: "t", priority: 6 }, "write"))
        assert.match(error.message, /at most 5 \(workflow_max_priority\)/)
      }).pipe(Effect.provide(using({ topology: workflow({ workflow_max_priority: 5 }) })))
    )

    it.effect("has neither stages nor entry routes on other topologies", () =>
      Effect.gen(function* () {
        const { publishToEntry, publishToStage, publishWorkflowMessage } = yield* BrokerClient
        const body = { task_id: "t" }
        for (const publish of [
          publishToEntry(body, "start"),
          publishToStage(body, "write"),
          publishWorkflowMessage(body, "writer.write.in")
        ]) {
          assert.deepInclude(yield* Effect.flip(publish), { reason: "not_a_workflow" })
        }
      }).pipe(Effect.provide(using({ topology: shared() })))
    )
  })

  describe("statuses", () => {
    it.effect("go to the shared status exchange by their task id", () =>
      Effect.gen(function* () {
        const { publishStatus } = yield* BrokerClient
        yield* TestClock.setTime(0)
        yield* publishStatus({ task_id: "t1", status: "searching", meta: { step: 1 }, event_id: "e1" })
        assert.deepStrictEqual(yield* letters("status.queue"), [
          {
            exchange: "status",
            routingKey: "t1",
            body: {
              task_id: "t1",
              status: "searching",
              timestamp: "1970-01-01T00:00:00Z",
              meta: { step: 1 },
              correlation_id: "t1",
              event_id: "e1",
              spec_version: "1.0"
            },
            properties: {
              contentType: "application/json",
              persistent: true,
              correlationId: "t1",
              priority: 0,
              headers: { task_id: "t1", status: "searching" }
            }
          }
        ])
      }).pipe(Effect.provide(using({ topology: shared() })))
    )

    it.effect("for aggregation reach the shard of the parent, and stay visible on the status exchange", () =>
      Effect.gen(function* () {
        const { ensureAggregationQueue, publishAggregationStatus } = yield* BrokerClient
        // golden: the shard of parent-1 of 4 is 1
        assert.strictEqual(yield* ensureAggregationQueue([1]), "aggregation.queue.1")
        assert.strictEqual(yield* ensureAggregationQueue([2]), "aggregation.queue.2")
        yield* publishAggregationStatus({
          task_id: "child",
          status: "aggregating",
          meta: { parent_task_id: "parent-1", aggregation_shard: 3 }
        })
        const [letter, ...others] = yield* letters("aggregation.queue.1")
        assert.deepStrictEqual(others, [])
        assert.strictEqual(letter?.routingKey, "agg.1")
        assert.deepInclude(letter?.body, {
          task_id: "child",
          meta: { parent_task_id: "parent-1", aggregation_shard: 1, aggregation_role: "aggregation" }
        })
        assert.deepStrictEqual(
          (yield* letters("status.queue")).map(({ body }) => body),
          [letter?.body]
        )
        assert.deepStrictEqual(yield* letters("aggregation.queue.2"), [])
      }).pipe(Effect.provide(using({ topology: sharded() })))
    )

    it.effect("of a task itself reach no aggregation queue", () =>
      Effect.gen(function* () {
        const { ensureAggregationQueue, publishStatus } = yield* BrokerClient
        const queue = yield* ensureAggregationQueue([0, 1, 2, 3])
        yield* publishStatus({ task_id: "parent-1", status: "processing", meta: { parent_task_id: "parent-1" } })
        assert.deepStrictEqual(yield* letters(queue), [])
        const error = yield* Effect.flip(publishStatus({ task_id: "agg.2", status: "processing" }))
        assert.deepInclude(error, { reason: "task_id" })
      }).pipe(Effect.provide(using({ topology: routedSharded() })))
    )

    it.effect("for aggregation are not permitted without meta.parent_task_id, nor on other topologies", () =>
      Effect.gen(function* () {
        const { publishAggregationStatus } = yield* BrokerClient
        for (const meta of [{}, { parent_task_id: " " }]) {
          const error = yield* Effect.flip(publishAggregationStatus({ task_id: "t", status: "x", meta }))
          assert.deepInclude(error, { reason: "parent_task_id_required", field: "meta.parent_task_id" })
        }
        const other = yield* BrokerClient.make({ topology: shared() })
        const event = { task_id: "t", status: "x", meta: { parent_task_id: "p" } }
        assert.deepInclude(yield* Effect.flip(other.publishAggregationStatus(event)), { reason: "no_aggregation" })
        assert.deepInclude(yield* Effect.flip(other.ensureAggregationQueue([0])), { reason: "no_aggregation" })
      }).pipe(Effect.provide(using({ topology: sharded() })))
    )
  })

  describe("queues", () => {
    it.effect("of aggregation are named by their shards, or by hand", () =>
      Effect.gen(function* () {
        const { ensureAggregationQueue, inspectQueue } = yield* BrokerClient
        assert.strictEqual(yield* ensureAggregationQueue([3, 1, 3]), "aggregation.queue.shards.1-3")
        assert.strictEqual(yield* ensureAggregationQueue([0], "mine"), "mine")
        assert.isTrue(Option.isSome(yield* inspectQueue("aggregation.queue.shards.1-3")))
        assert.deepInclude(yield* Effect.flip(ensureAggregationQueue([4])), { reason: "shard" })
        assert.deepInclude(yield* Effect.flip(ensureAggregationQueue([])), { reason: "shard" })
      }).pipe(Effect.provide(using({ topology: sharded() })))
    )

    it.effect("of retries bring a message back after the delay", () =>
      Effect.gen(function* () {
        const { ensureRetryInfrastructure, initialize, publishRawToQueue } = yield* BrokerClient
        yield* initialize
        const policy = new RetryPolicy({ delay_ms: 30_000 })
        const queues = yield* ensureRetryInfrastructure("tasks.queue", policy)
        assert.strictEqual(queues.deadLetterQueue, "tasks.queue.dlq")
        const body = Buffer.from('{"task_id":"t1"}')
        yield* publishRawToQueue(queues.retryQueueOf(30_000), body, { correlationId: "t1", headers: { n: 1 } })
        assert.deepStrictEqual(yield* waiting("tasks.queue"), Option.some(0))
        yield* TestClock.adjust("30 seconds")
        const [letter] = yield* letters("tasks.queue")
        assert.deepStrictEqual(letter?.body, { task_id: "t1" })
        assert.strictEqual(letter?.properties.headers?.["n"], 1)
        const error = yield* Effect.flip(publishRawToQueue("nowhere", body))
        assert.deepInclude(error, {
          _tag: "Unroutable",
          message: "There is no queue nowhere: declare it, or start the worker that declares it."
        })
      }).pipe(Effect.provide(using({ topology: shared() })))
    )

    it.effect("can be looked into by a channel of one's own, and the broker be asked for a sign of life", () =>
      Effect.gen(function* () {
        const { acquireChannel, ping, publishTask } = yield* BrokerClient
        yield* publishTask({ task_id: "t1" })
        const channel = yield* acquireChannel()
        const delivery = Option.getOrThrow(yield* channel.get("tasks.queue"))
        assert.strictEqual(delivery.routingKey, "tasks.key")
        yield* ping
      }).pipe(Effect.scoped, Effect.provide(using({ topology: shared() })))
    )
  })

  describe("traces", () => {
    const publishedBelow = (sampled: boolean) =>
      Effect.gen(function* () {
        const spans: Array<Tracer.NativeSpan> = []
        const tracer = Tracer.make({
          span: (options) => {
            const span = new Tracer.NativeSpan(options)
            spans.push(span)
            return span
          }
        })
        yield* Effect.gen(function* () {
          const { publishTask } = yield* BrokerClient.make({ topology: shared() })
          yield* Effect.withSpan(publishTask({ task_id: "t1" }), "request", { sampled })
        }).pipe(Effect.provideService(Tracer.Tracer, tracer))
        const [letter] = yield* letters("tasks.queue")
        return { spans, headers: letter?.properties.headers }
      }).pipe(Effect.provide(using({ topology: shared() })))

    it.effect("have a span for a publish below a sampled one, which the message names", () =>
      Effect.gen(function* () {
        const { headers, spans } = yield* publishedBelow(true)
        const span = spans.find(({ name }) => name === "publish tasks")
        assert.strictEqual(span?.kind, "producer")
        assert.strictEqual(span?.attributes.get("messaging.rabbitmq.destination.routing_key"), "tasks.key")
        assert.strictEqual(headers?.["traceparent"], `00-${span?.traceId}-${span?.spanId}-01`)
      })
    )

    it.effect("have none below one that is not sampled, and the message says so", () =>
      Effect.gen(function* () {
        const { headers, spans } = yield* publishedBelow(false)
        assert.isUndefined(spans.find(({ name }) => name === "publish tasks"))
        const [{ name, spanId, traceId } = assert.fail("no span")] = spans
        assert.strictEqual(name, "request")
        assert.deepStrictEqual(headers, { task_id: "t1", traceparent: `00-${traceId}-${spanId}-00` })
      })
    )
  })
})
