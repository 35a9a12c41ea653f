import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import * as Handler from "../../../src/messaging/consume/Handler.ts"
import * as TaskConsumer from "../../../src/messaging/consume/TaskConsumer.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import { RetryPolicy } from "../../../src/messaging/topology/RetryPolicy.ts"
import { LifecycleStatusConfig } from "../../../src/messaging/topology/StatusSettings.ts"
import { letters } from "../Letters.ts"
import { drop, onMemory, settleDown, statuses, working } from "../TaskWorker.ts"

const queue = "tasks.queue"

class Images extends Context.Service<Images, { readonly resize: (width: number) => Effect.Effect<string> }>()(
  "test/Images"
) {}

class Sound extends Context.Service<Sound, { readonly play: Effect.Effect<string> }>()("test/Sound") {}

const Resize = Schema.Struct({ width: Schema.FiniteFromString, label: Schema.optionalKey(Schema.String) })

const publish = (task: Parameters<BrokerClient["Service"]["publishTask"]>[0]) =>
  Effect.flatMap(BrokerClient, (client) => client.publishTask(task))

const policy = new RetryPolicy()

describe("Handler", () => {
  it.effect("gets its payload decoded by its schema, and its services from the layers around the consumer", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const handler = Handler.withPayload(Resize, (task, context) =>
        Effect.gen(function* () {
          const images = yield* Images
          seen.push(`${context.taskId} ${yield* images.resize(task.payload.width + 1)}`)
        })
      )
      yield* Effect.provide(
        working({ handler }),
        Layer.succeed(Images, { resize: (width) => Effect.succeed(`w${width}`) })
      )
      yield* publish({ task_id: "t1", payload: { width: "41" } })
      yield* settleDown
      assert.deepStrictEqual(seen, ["t1 w42"])
    }).pipe(onMemory())
  )

  it.effect(
    "payload_schema_violation: a payload that does not meet the schema is dead-lettered, and watchers hear of it",
    () =>
      Effect.gen(function* () {
        const { observed } = yield* working({
          handler: Handler.withPayload(Resize, () => Effect.void),
          retryPolicy: policy,
          lifecycleStatuses: new LifecycleStatusConfig({ enabled: true })
        })
        yield* publish({ task_id: "t1", task_type: "resize", payload: { width: "secret wide", label: 5 } })
        yield* settleDown
        const [dead] = yield* letters("tasks.queue.dlq")
        assert.deepInclude(dead?.properties.headers, {
          "x-svc-retry-attempt": 0,
          "x-svc-failure-reason": "payload_schema_violation",
          "x-svc-exception-type": "TaskRefused"
        })
        const failed = (yield* statuses).at(-1)
        assert.strictEqual(failed.status, "failed")
        assert.match(
          failed.message,
          /^The payload does not match the handler's schema: payload\.width .*; payload\.label /
        )
        assert.notInclude(JSON.stringify([failed, observed]), "secret")
      }).pipe(onMemory())
  )

  it.effect("of a record runs by the task type, each with its own payload and services", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const handler = Handler.byTaskType({
        resize: Handler.withPayload(Resize, ({ payload }) =>
          Effect.flatMap(Images, ({ resize }) => Effect.map(resize(payload.width), (made) => seen.push(made)))
        ),
        play: Handler.make(() => Effect.flatMap(Sound, ({ play }) => Effect.map(play, (made) => seen.push(made))))
      })
      const services = Layer.merge(
        Layer.succeed(Images, { resize: (width) => Effect.succeed(`w${width}`) }),
        Layer.succeed(Sound, { play: Effect.succeed("played") })
      )
      yield* Effect.provide(working({ handler }), services)
      yield* publish({ task_id: "a", task_type: "play" })
      yield* publish({ task_id: "b", task_type: "resize", payload: { width: "3" } })
      yield* settleDown
      assert.deepStrictEqual(seen, ["played", "w3"])
    }).pipe(onMemory())
  )

  it.effect("unknown_task_type: other types, and none, are dead-lettered directly", () =>
    Effect.gen(function* () {
      yield* working({ handler: Handler.byTaskType({ play: Handler.make(() => Effect.void) }), retryPolicy: policy })
      yield* publish({ task_id: "a", task_type: "resize" })
      yield* publish({ task_id: "b" })
      // not a member of the record, though every object has one of that name
      yield* publish({ task_id: "c", task_type: "constructor" })
      yield* settleDown
      assert.deepStrictEqual(
        (yield* letters("tasks.queue.dlq")).map(({ properties }) => properties.headers?.["x-svc-failure-reason"]),
        ["unknown_task_type", "unknown_task_type", "unknown_task_type"]
      )
    }).pipe(onMemory())
  )

  it.effect("without a retry policy a refused task is rejected by its reason", () =>
    Effect.gen(function* () {
      const { observed } = yield* working({ handler: Handler.byTaskType({ play: Handler.make(() => Effect.void) }) })
      yield* publish({ task_id: "a" })
      yield* settleDown
      assert.deepInclude(observed.at(-1), { event_type: "TaskMessageRejected", reason: "unknown_task_type" })
    }).pipe(onMemory())
  )

  it.effect("an error of one's own says by a member that trying again is pointless", () =>
    Effect.gen(function* () {
      class Gone extends Schema.TaggedError<Gone>()("Gone", { page: Schema.Int }) {
        readonly retryable = false
      }
      yield* working({ handler: Handler.make(() => Effect.fail(new Gone({ page: 4 }))), retryPolicy: policy })
      yield* drop(queue, '{"task_id":"t1"}')
      yield* settleDown
      const [dead] = yield* letters("tasks.queue.dlq")
      assert.deepInclude(dead?.properties.headers, { "x-svc-exception-type": "Gone", "x-svc-retry-attempt": 0 })
    }).pipe(onMemory())
  )

  it.effect("may fail with an error that cannot be read: the task is counted and dead-lettered like any other", () =>
    Effect.gen(function* () {
      class Secretive extends Error {
        override get message(): string {
          throw new Error("nobody may read this")
        }
      }
      const once = new RetryPolicy({ max_retries: 0 })
      yield* working({ handler: Handler.make(() => Effect.fail(new Secretive())), retryPolicy: once })
      yield* drop(queue, '{"task_id":"t1"}')
      yield* settleDown
      const [dead] = yield* letters("tasks.queue.dlq")
      assert.deepInclude(dead?.properties.headers, {
        "x-svc-failure-reason": "handler_error",
        "x-svc-retry-attempt": 0
      })
    }).pipe(onMemory())
  )

  it.effect("runs in a worker that is a layer, and ends with it", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const worker = TaskConsumer.layer({
        handler: Handler.make(({ task_id }) => Effect.sync(() => seen.push(task_id)))
      })
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* Layer.build(worker)
          yield* settleDown
          yield* publish({ task_id: "t1" })
          yield* settleDown
        })
      )
      yield* publish({ task_id: "t2" })
      yield* settleDown
      assert.deepStrictEqual(seen, ["t1"])
    }).pipe(onMemory())
  )
})
