import { hash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Logger, Schema, type Scope } from "effect"
import * as StatusRuntime from "../../../src/graph/StatusRuntime.ts"
import * as Handler from "../../../src/messaging/consume/Handler.ts"
import * as TaskConsumer from "../../../src/messaging/consume/TaskConsumer.ts"
import type { HandlerReport } from "../../../src/messaging/control/ControlRecords.ts"
import * as ControlStore from "../../../src/messaging/control/ControlStore.ts"
import * as RedisWorkControl from "../../../src/messaging/control/RedisWorkControl.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import { RetryPolicy } from "../../../src/messaging/topology/RetryPolicy.ts"
import type { Broker } from "../../../src/services/Broker.ts"
import { type Redis, RedisError } from "../../../src/services/Redis.ts"
import { DeadLetterStore } from "../../../src/status/dead-letters/DeadLetterStore.ts"
import * as PayloadCheck from "../../../src/status/payload/PayloadCheck.ts"
import { eventually } from "../../Eventually.ts"
import type { TemporaryNames } from "../../TemporaryNames.ts"
import { inMemory, start, stores, variants } from "../DeadLetterServer.ts"
import { deadLetter } from "../DeadLetters.ts"
import { runtimeOf } from "../RepairedTasks.ts"
import { names } from "../RepairedWorld.ts"

const Mail = Schema.Struct({
  to: Schema.String,
  copies: Schema.Int,
  attachments: Schema.optionalKey(Schema.Array(Schema.Struct({ name: Schema.NonEmptyString })))
})

/** A status server, a worker of version 2.3.0 whose handlers have schemas, and the letters of tasks that do not fit. */
const world = Effect.gen(function* () {
  const given = yield* names
  const context = yield* Layer.build(StatusRuntime.layer(runtimeOf(given)))
  const client = Context.get(context, BrokerClient)
  const dlqStore = Context.get(context, DeadLetterStore)
  const worker = TaskConsumer.layer({
    retryPolicy: new RetryPolicy({ max_retries: 0 }),
    dlqStore,
    handler: Handler.byTaskType({
      send: Handler.withPayload(Mail, () => Effect.void),
      any: Handler.make(() => Effect.fail("no"))
    })
  })
  const control = Layer.provide(
    RedisWorkControl.layer({ host: "here", pid: 1, version: "2.3.0" }),
    ControlStore.layer()
  )
  yield* Layer.build(Layer.provide(worker, control)).pipe(Effect.provide(context))
  const server = yield* start({}, { worker: null }).pipe(Effect.provide(context))
  const fail = Effect.fnUntraced(function* (
    task_id: string,
    task_type: string | null,
    payload: Readonly<Record<string, unknown>>
  ) {
    yield* client.publishTask({ task_id, payload, ...(task_type !== null && { task_type }) })
    const { items } = yield* eventually(dlqStore.list({ task_id }, { limit: 1 }), ({ items }) => items.length > 0)
    return `/dlq/messages/${items[0]?.dlq_id}`
  })
  return { ...server, fail }
})

describe.each(variants)("payloads of dead letters and the schemas of their handlers, $name", ({ doors, skip }) => {
  const live = (title: string, test: Effect.Effect<void, unknown, Broker | Redis | TemporaryNames | Scope.Scope>) =>
    it.live.skipIf(skip)(title, () => test.pipe(Effect.scoped, Effect.provide([doors, Logger.layer([])])), 60_000)

  live(
    "a letter shows which members do not fit, and a check of an edit does so before it is replayed",
    Effect.gen(function* () {
      const { fail, get, post } = yield* world
      const letter = yield* fail("t1", "send", { copies: 12345678901234567890n.toString() })
      const { body } = yield* eventually(get(letter), ({ body }) => body.payload_fit.schema !== null)
      const { not_compared, schema, ...found } = body.payload_fit
      assert.deepInclude(schema, { task_type: "send", action: null, worker_version: "2.3.0" })
      assert.isBelow(Math.abs(Date.now() - Date.parse(schema.reported_at)), 60_000)
      assert.isNull(not_compared)
      assert.deepStrictEqual(found, {
        fields: [
          { field: "payload.copies", message: "must be an integer" },
          { field: "payload.to", message: "is required" }
        ],
        more_fields: false,
        not_checked: []
      })

      const checked = yield* post(`${letter}/edits/check`, '{"payload":{"to":"ada","copies":12345678901234567890}}')
      assert.deepInclude(checked.body, { valid: true, task_id: "t1", schema, not_compared: null })
      // JavaScript would round the number, so the handler refuses it.
      assert.deepStrictEqual(checked.body.fields, [{ field: "payload.copies", message: "must be an integer" }])

      const whole = { task_id: "t1", task_type: "send", payload: { to: "ada", copies: 1, attachments: [{ name: "" }] } }
      const { body: ofWhole } = yield* post(`${letter}/edits/check`, { body: whole })
      assert.deepStrictEqual(ofWhole.fields, [
        { field: "body.payload.attachments.0.name", message: "must have at least 1 character" }
      ])
      const fits = { payload: { to: "ada", copies: 1 } }
      assert.deepStrictEqual((yield* post(`${letter}/edits/check`, fits)).body.fields, [])

      // An edit that does not fit is replayed nevertheless, and fails again.
      const bad = yield* post(`${letter}/edits`, { payload: { to: "ada" } })
      assert.strictEqual(bad.status, 201)
      const again = yield* eventually(
        get(`/dlq/messages/${bad.body.dlq_id}`),
        ({ body }) => body.replay_outcome?.outcome === "failed_again"
      )
      assert.deepStrictEqual(again.body.payload_fit.fields, [{ field: "payload.copies", message: "is required" }])
    })
  )

  live(
    "a letter without a known schema says why, and the check of its edit too",
    Effect.gen(function* () {
      const { fail, get, post } = yield* world
      const why = (letter: string) =>
        Effect.gen(function* () {
          const { body } = yield* eventually(
            get(letter),
            ({ body }) => !body.payload_fit.not_compared.startsWith("No worker of")
          )
          const checked = yield* post(`${letter}/edits/check`, { payload: {} })
          assert.deepStrictEqual([checked.status, checked.body.schema, checked.body.fields], [200, null, []])
          assert.strictEqual(checked.body.not_compared, body.payload_fit.not_compared)
          return body.payload_fit.not_compared
        })
      assert.strictEqual(
        yield* why(yield* fail("t1", "any", {})),
        "There is no schema of the handler of any in version 2.3.0 of the worker."
      )
      assert.strictEqual(
        yield* why(yield* fail("t2", "other", {})),
        "There is no handler of other in version 2.3.0 of the worker, so it refuses the message."
      )
      assert.strictEqual(
        yield* why(yield* fail("t3", null, {})),
        "There is no handler of messages without task_type in version 2.3.0 of the worker, so it refuses the message."
      )
    })
  )
})

describe("a schema that something else than a worker of this version has stored", () => {
  const letterOf = (message: unknown) => {
    const body = Buffer.from(JSON.stringify(message))
    return deadLetter(hash("sha256", body, "hex"), { source_queue_name: "work", raw_body_b64: body.toString("base64") })
  }

  /** Returns the fit of a letter's payload, with `text` stored as the schema of its type. */
  const fitOf = Effect.fnUntraced(function* (
    text: string | null,
    message: unknown = { task_id: "t", task_type: "send", payload: { to: 5 } },
    report: Partial<HandlerReport> = {}
  ) {
    const letter = letterOf(message)
    yield* (yield* DeadLetterStore).record(letter)
    const { announceHandlers } = yield* ControlStore.ControlStore
    const now = new Date().toISOString()
    const schema = hash("sha256", text ?? "", "hex")
    yield* announceHandlers(
      {
        queue: "work",
        worker: "w",
        version: "9",
        started_at: now,
        reported_at: now,
        typed_by: "task_type",
        handlers: [{ type: null, known: "reported", schema }],
        left_out: 0,
        ...report
      },
      new Map(text === null ? [] : [[schema, text]])
    )
    const { get } = yield* start({}, { worker: null })
    const { body, status } = yield* get(`/dlq/messages/${letter.dlq_id}`)
    assert.strictEqual(status, 200)
    return body.payload_fit
  })

  const live = (
    title: string,
    test: Effect.Effect<
      void,
      unknown,
      ControlStore.ControlStore | DeadLetterStore | Redis | Broker | PayloadCheck.PayloadCheck | Scope.Scope
    >
  ) =>
    it.live(title, () =>
      test.pipe(
        Effect.scoped,
        Effect.provide(
          PayloadCheck.layer.pipe(
            Layer.provideMerge(Layer.merge(ControlStore.layer(), stores())),
            Layer.provideMerge(inMemory)
          )
        )
      )
    )

  const unreadable = "The schema that a worker of work has reported cannot be read."

  live(
    "is read and never run, and what cannot be checked is named",
    Effect.gen(function* () {
      const elsewhere = yield* fitOf(
        '{"properties":{"to":{"$ref":"http://127.0.0.1:1/schema"},"cc":{"type":"string"}},"required":["cc"]}'
      )
      assert.deepStrictEqual(elsewhere.fields, [{ field: "payload.cc", message: "is required" }])
      assert.deepStrictEqual(elsewhere.not_checked, ['payload.to: what "http://127.0.0.1:1/schema" refers to'])
    })
  )

  live(
    "is not used where it is too large, is no JSON, or is gone",
    Effect.gen(function* () {
      assert.strictEqual((yield* fitOf(`{"title":"${"x".repeat(65_536)}"}`)).not_compared, unreadable)
      assert.strictEqual((yield* fitOf("{")).not_compared, unreadable)
      assert.strictEqual((yield* fitOf(null)).not_compared, unreadable)
    })
  )

  live(
    "is not used for a message without a payload, or with many of them",
    Effect.gen(function* () {
      const why = (message: unknown) => Effect.map(fitOf("{}", message), ({ not_compared }) => not_compared)
      assert.strictEqual(yield* why([]), "The message is no JSON object.")
      assert.strictEqual(yield* why({ task_id: "t" }), "The message has no payload.")
      assert.match(yield* why({ batch_id: "b", tasks: [{ task_id: "t", payload: {} }] }), /is a batch/)
    })
  )

  live(
    "is that of the action of a workflow's message",
    Effect.gen(function* () {
      const message = { task_id: "t", stage: "write", action: "print", payload: {} }
      const text = '{"required":["to"]}'
      const schema = hash("sha256", text, "hex")
      const handlers = [{ type: "print", known: "reported" as const, schema }]
      const fit = yield* fitOf(text, message, { typed_by: "action", handlers })
      assert.deepInclude(fit.schema, { task_type: null, action: "print", worker_version: "9" })
      assert.deepStrictEqual(fit.fields, [{ field: "payload.to", message: "is required" }])
      const others = yield* fitOf(text, message, { typed_by: "action", handlers: [], left_out: 3 })
      assert.match(others.not_compared, /a worker reports 100 at most/)
      for (const [known, words] of [
        ["too_large", /has more than 64 KiB/],
        ["not_representable", /cannot be written as JSON Schema/]
      ] as const) {
        const left = yield* fitOf(null, message, { handlers: [{ type: null, known, schema: null }] })
        assert.match(left.not_compared, words)
      }
    })
  )

  it.live("is unknown where Redis does not respond, and where the server does not read reports", () =>
    Effect.gen(function* () {
      const failing = Layer.effect(
        ControlStore.ControlStore,
        Effect.map(ControlStore.ControlStore, (store) =>
          ControlStore.ControlStore.of({
            ...store,
            handlersOf: () =>
              Effect.fail(new RedisError({ operation: "command", retryable: true, cause: new Error("away") }))
          })
        )
      ).pipe(Layer.provide(ControlStore.layer()))
      const letter = letterOf({ task_id: "t", payload: {} })
      const message = `/dlq/messages/${letter.dlq_id}`
      yield* (yield* DeadLetterStore).record(letter)
      const without = yield* start({}, { worker: null })
      const { body } = yield* without.get(message)
      assert.strictEqual(body.payload_fit.not_compared, "This server does not read the schemas of workers.")
      const { get } = yield* Effect.provide(
        start({}, { worker: null }),
        PayloadCheck.layer.pipe(Layer.provide(failing))
      )
      const { body: away } = yield* get(message)
      assert.strictEqual(
        away.payload_fit.not_compared,
        "Redis does not respond, so the schemas of workers cannot be read."
      )
    }).pipe(Effect.scoped, Effect.provide([stores().pipe(Layer.provideMerge(inMemory)), Logger.layer([])]))
  )
})
