import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Schema, type Scope } from "effect"
import * as BrokerMemory from "../../../layers/BrokerMemory.ts"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import * as Handler from "../../../src/messaging/consume/Handler.ts"
import * as TaskConsumer from "../../../src/messaging/consume/TaskConsumer.ts"
import * as WorkflowConsumer from "../../../src/messaging/consume/WorkflowConsumer.ts"
import * as WorkflowHandler from "../../../src/messaging/consume/WorkflowHandler.ts"
import type { HandlerReport } from "../../../src/messaging/control/ControlRecords.ts"
import * as ControlStore from "../../../src/messaging/control/ControlStore.ts"
import * as RedisWorkControl from "../../../src/messaging/control/RedisWorkControl.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import type { Broker } from "../../../src/services/Broker.ts"
import { Redis } from "../../../src/services/Redis.ts"
import { eventually } from "../../Eventually.ts"
import * as TemporaryPrefix from "../../TemporaryPrefix.ts"
import { shared, workflow } from "../SampleTopologies.ts"

const broker = BrokerMemory.layerConnection().pipe(Layer.provideMerge(BrokerMemory.layerServer()))

const variants = [
  { name: "in memory", skip: false, redis: RedisMemory.layer() },
  { name: "on Redis", skip: TemporaryPrefix.server === null, redis: TemporaryPrefix.layer }
]

const control = (version: string) => RedisWorkControl.layer({ host: "here", pid: 1, version })

const topology = shared()

const worker = <E, R>(consumer: Layer.Layer<never, E, R>, version = "2.3.0") =>
  consumer.pipe(Layer.provide(BrokerClient.layer({ topology })), Layer.provide(control(version)))

const reported = (queue: string) =>
  Effect.gen(function* () {
    const { handlersOf } = yield* ControlStore.ControlStore
    return Option.getOrThrow(yield* eventually(handlersOf(queue), Option.isSome))
  })

/** The report of each type: the schema, or why there is none. */
const schemas = Effect.fnUntraced(function* ({ handlers }: HandlerReport) {
  const { payloadSchema } = yield* ControlStore.ControlStore
  return yield* Effect.forEach(handlers, ({ known, schema, type }) =>
    schema === null
      ? Effect.succeed([type, known] as const)
      : Effect.map(payloadSchema(schema), (text): readonly [string | null, unknown] => [
          type,
          JSON.parse(Option.getOrThrow(text))
        ])
  )
})

const Mail = Schema.Struct({ to: Schema.String, sendAt: Schema.optionalKey(Schema.DateTimeUtcFromString) })

const mailSchema = {
  type: "object",
  properties: { to: { type: "string" }, sendAt: { type: "string" } },
  required: ["to"],
  additionalProperties: true,
  $defs: {}
}

const nothing = () => Effect.void

/** A schema that refers to itself by two ways, 40 times: written out it would have 2^40 parts. */
const endless = () => {
  let schema: Schema.Codec<unknown> = Schema.String
  for (let level = 0; level < 40; level++) schema = Schema.Struct({ one: schema, other: schema })
  return schema
}

describe.each(variants)("the schemas of handlers, $name", ({ redis, skip }) => {
  const live = (
    title: string,
    test: Effect.Effect<void, unknown, ControlStore.ControlStore | Redis | Broker | Scope.Scope>
  ) =>
    it.live.skipIf(skip)(title, () =>
      test.pipe(
        Effect.scoped,
        Effect.provide(ControlStore.layer().pipe(Layer.provideMerge(redis), Layer.merge(broker)))
      )
    )

  live(
    "are reported by a worker for each type, with its version and the time",
    Effect.gen(function* () {
      const handler = Handler.byTaskType({
        send: Handler.withPayload(Mail, nothing),
        sendLater: Handler.withPayload(Mail, nothing),
        any: Handler.make(nothing)
      })
      yield* Layer.build(worker(TaskConsumer.layer({ handler })))
      const report = yield* reported(topology.tasks.queue)
      assert.deepInclude(report, { version: "2.3.0", typed_by: "task_type", left_out: 0 })
      assert.isBelow(Math.abs(Date.now() - Date.parse(report.reported_at)), 10_000)
      assert.isAtMost(Date.parse(report.started_at), Date.parse(report.reported_at))
      assert.deepStrictEqual(yield* schemas(report), [
        ["send", mailSchema],
        ["sendLater", mailSchema],
        ["any", "none"]
      ])
      // equal schemas are one
      assert.strictEqual(report.handlers[0]?.schema, report.handlers[1]?.schema)
      const { command, key } = yield* Redis
      for (const name of [`handlers:${topology.tasks.queue}`, `schema:${report.handlers[0]?.schema}`]) {
        const ttl = Number(yield* command("PTTL", key(`svc:{work}:${name}`)))
        assert.isTrue(ttl > 6 * 86_400_000 && ttl <= 7 * 86_400_000, `${name} ${ttl}`)
      }
    })
  )

  live(
    "are those of all types where a handler takes all",
    Effect.gen(function* () {
      yield* Layer.build(worker(TaskConsumer.layer({ handler: Handler.withPayload(Mail, nothing) })))
      assert.deepStrictEqual(yield* schemas(yield* reported(topology.tasks.queue)), [[null, mailSchema]])
    })
  )

  live(
    "are left out, and the worker works, where they are too large, have no form as JSON Schema, or are too many",
    Effect.gen(function* () {
      const handled: Array<string> = []
      const told = ({ task_id }: { readonly task_id: string }) => Effect.sync(() => void handled.push(task_id))
      const unwritable = Schema.String.check(
        Schema.makeFilter(() => true, {
          toJsonSchema: () => {
            throw new Error("This filter has no form in JSON Schema.")
          }
        })
      )
      const large = Schema.Literals(Array.from({ length: 7_000 }, (_, n) => `value ${n}`))
      const many = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`type${n}`, Handler.make(told)]))
      const handler = Handler.byTaskType({
        unwritable: Handler.withPayload(Schema.Struct({ text: unwritable }), told),
        endless: Handler.withPayload(endless(), told),
        large: Handler.withPayload(large, told),
        date: Handler.withPayload(Schema.Struct({ at: Schema.Date }), told),
        ...many
      })
      yield* Layer.build(worker(TaskConsumer.layer({ handler })))
      const report = yield* reported(topology.tasks.queue)
      assert.deepStrictEqual([report.handlers.length, report.left_out], [100, 4])
      assert.deepStrictEqual((yield* schemas(report)).slice(0, 4), [
        ["unwritable", "not_representable"],
        ["endless", "not_representable"],
        ["large", "too_large"],
        ["date", { type: "object", properties: { at: {} }, required: ["at"], additionalProperties: true, $defs: {} }]
      ])
      yield* Effect.gen(function* () {
        const { publishTask } = yield* BrokerClient
        yield* publishTask({ task_id: "t1", task_type: "unwritable", payload: { text: "x" } })
      }).pipe(Effect.provide(BrokerClient.layer({ topology })))
      yield* eventually(
        Effect.sync(() => handled),
        (all) => all.includes("t1")
      )
    })
  )

  live(
    "are reported by the workers of a workflow for each action",
    Effect.gen(function* () {
      const plan = workflow()
      const handler = WorkflowHandler.byAction({
        write: WorkflowHandler.withPayload(Mail, nothing),
        skip: WorkflowHandler.make(nothing)
      })
      yield* Layer.build(
        WorkflowConsumer.layer({ stage: "write", handler }).pipe(
          Layer.provide(BrokerClient.layer({ topology: plan })),
          Layer.provide(control("1"))
        )
      )
      const report = yield* reported("write.queue")
      assert.strictEqual(report.typed_by, "action")
      assert.deepStrictEqual(yield* schemas(report), [
        ["write", mailSchema],
        ["skip", "none"]
      ])
    })
  )

  live(
    "are those of the worker that started last, until it has not reported for three minutes",
    Effect.gen(function* () {
      const { announceHandlers, handlersOf } = yield* ControlStore.ControlStore
      const ago = (seconds: number) => new Date(Date.now() - seconds * 1_000).toISOString()
      const announce = (worker: string, started: number, seen = 0) =>
        announceHandlers(
          {
            queue: "work",
            worker,
            version: worker,
            started_at: ago(started),
            reported_at: ago(seen),
            typed_by: "task_type",
            handlers: [],
            left_out: 0
          },
          new Map()
        )
      const speaker = Effect.map(handlersOf("work"), (report) => Option.getOrThrow(report).worker)
      yield* announce("old", 600)
      yield* announce("new", 60)
      yield* announce("old", 600)
      assert.strictEqual(yield* speaker, "new")
      yield* announce("new", 60, 200)
      yield* announce("old", 600)
      assert.strictEqual(yield* speaker, "old")
      assert.isTrue(Option.isNone(yield* handlersOf("another")))
    })
  )

  live(
    "are not known, and nothing fails, where something else is stored in their place",
    Effect.gen(function* () {
      const { handlersOf, payloadSchema } = yield* ControlStore.ControlStore
      const { command, key } = yield* Redis
      yield* command("SET", key("svc:{work}:handlers:work"), '{"queue":5}')
      assert.isTrue(Option.isNone(yield* handlersOf("work")))
      assert.isTrue(Option.isNone(yield* payloadSchema("absent")))
    })
  )
})
