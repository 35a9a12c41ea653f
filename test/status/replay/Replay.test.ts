import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { Broker, type Outcome } from "../../../src/services/Broker.ts"
import { DeadLetterStore } from "../../../src/status/dead-letters/DeadLetterStore.ts"
import { eventually } from "../../Eventually.ts"
import { TemporaryNames } from "../../TemporaryNames.ts"
import { drained, queue, start, stores, variants } from "../DeadLetterServer.ts"
import { deadLetter } from "../DeadLetters.ts"

describe.each(variants)("a replay of one dead letter, $name", ({ doors, skip }) => {
  const live = skip ? it.live.skip : it.live

  live("brings the message as it was to its source queue, and says so", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const source = yield* queue("source")
      const { get, post } = yield* start()
      const raw_body_b64 = Buffer.from([0, 255, 10]).toString("base64")
      yield* store.record(deadLetter(1, { source_queue_name: source, raw_body_b64, content_type: "a/b" }))
      const { body, status } = yield* post("/dlq/messages/id-1/replay")
      assert.strictEqual(status, 200, JSON.stringify(body))
      const { replayed_at, ...rest } = body
      assert.match(replayed_at, /^\d{4}-\d\d-\d\dT[\d:.]+\+00:00$/)
      assert.deepStrictEqual(rest, {
        dlq_id: "id-1",
        target_queue_name: source,
        state: "replayed",
        replay_count: 1,
        forced: false
      })
      const [message, ...others] = yield* drained(source)
      assert.lengthOf(others, 0)
      assert.deepStrictEqual([...(message?.content ?? [])], [0, 255, 10])
      const { headers, ...properties } = message?.properties ?? {}
      assert.deepStrictEqual(
        [properties.contentType, properties.correlationId, properties.priority, properties.messageId],
        ["a/b", "correlation-1", 5, "message-1"]
      )
      assert.deepStrictEqual(headers, {
        task_id: "task-1",
        "x-svc-retry-attempt": 0,
        "x-svc-max-retries": 3,
        "x-svc-source-queue": "tasks",
        "x-svc-original-retry-attempt": 3,
        "x-svc-original-failure-reason": "handler_error",
        "x-svc-original-exception-type": "RangeError",
        "x-svc-replayed-from-dlq": true,
        "x-svc-dlq-id": "id-1",
        "x-svc-replayed-at": replayed_at
      })
      const { body: after } = yield* get("/dlq/messages/id-1")
      assert.deepStrictEqual(
        [after.state, after.replay_count, after.replayed_at, after.replay_target_queue_name],
        ["replayed", 1, replayed_at, source]
      )
      const again = yield* post("/dlq/messages/id-1/replay")
      assert.strictEqual(again.status, 409)
      assert.match(again.body.detail, /already replayed .* add \?force=true to the request/)
      const forced = yield* post("/dlq/messages/id-1/replay?force=true")
      assert.deepStrictEqual([forced.status, forced.body.forced, forced.body.replay_count], [200, true, 2])
      assert.lengthOf(yield* drained(source), 1)
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
  )

  live("is done once by a hundred requests at the same time", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const source = yield* queue("source")
      const [one, other] = [yield* start(), yield* start()]
      yield* store.record(deadLetter(1, { source_queue_name: source }))
      const answers = yield* Effect.forEach(
        Array.from({ length: 100 }, (_, n) => (n % 2 === 0 ? one : other)),
        ({ post }) => post("/dlq/messages/id-1/replay"),
        { concurrency: "unbounded" }
      )
      const statuses = answers.map(({ status }) => status)
      assert.lengthOf(
        statuses.filter((status) => status === 200),
        1
      )
      assert.lengthOf(
        statuses.filter((status) => status === 409),
        99
      )
      assert.lengthOf(yield* drained(source), 1)
      assert.strictEqual((yield* store.get("id-1"))?.replay_count, 1)
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
  )

  live("to a queue that is gone is refused, and changes nothing", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const source = (yield* TemporaryNames).queue("gone")
      const { get, post } = yield* start()
      yield* store.record(deadLetter(1, { source_queue_name: source }))
      const before = yield* get("/dlq/messages/id-1")
      const { body, status } = yield* post("/dlq/messages/id-1/replay")
      assert.strictEqual(status, 409)
      assert.match(body.detail, /queue .*gone does not exist any more/)
      assert.deepStrictEqual(yield* get("/dlq/messages/id-1"), before)
      yield* (yield* Broker).declare({ exchanges: [], queues: [{ name: source }], bindings: [] })
      assert.strictEqual((yield* post("/dlq/messages/id-1/replay")).status, 200)
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
  )

  live("of unknown outcome is told, refused from then on, and overridden by force alone", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const source = yield* queue("source")
      yield* store.record(deadLetter(1, { source_queue_name: source }))
      const lost = yield* answering({ _tag: "Unknown", reason: "lost", detail: "the connection is gone" })
      const doubtful = yield* Effect.provide(start({}, { worker: null }), lost)
      const { body, status } = yield* doubtful.post("/dlq/messages/id-1/replay")
      assert.strictEqual(status, 504)
      assert.match(body.detail, /unknown .*\(lost\).*replay_unknown/)
      const sound = yield* start()
      const { body: record } = yield* sound.get("/dlq/messages/id-1")
      assert.strictEqual(record.state, "replay_unknown")
      assert.match(record.replay_unknown_by, /^request /)
      assert.match(record.replay_unknown_at, /\+00:00$/)
      const { body: listed } = yield* sound.get("/dlq/messages?state=replay_unknown")
      assert.lengthOf(listed.items, 1)
      const refused = yield* sound.post("/dlq/messages/id-1/replay")
      assert.strictEqual(refused.status, 409)
      assert.match(refused.body.detail, /unknown whether the message was published.*force=true/)
      assert.lengthOf(yield* drained(source), 0)
      assert.strictEqual((yield* sound.post("/dlq/messages/id-1/replay?force=true")).status, 200)
      assert.lengthOf(yield* drained(source), 1)
      assert.strictEqual((yield* store.get("id-1"))?.state, "replayed")
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
  )

  live("that the broker refuses leaves every state as it was", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const unknown = { replay_unknown_at: "2026-11-20T13:00:00+00:00", replay_unknown_by: "request 1" }
      const records = [
        deadLetter(1),
        deadLetter(2, { state: "replayed", replayed_at: "2026-11-20T13:00:00+00:00", replay_count: 1 }),
        deadLetter(3, { state: "replay_unknown", ...unknown })
      ]
      for (const record of records) yield* store.record(record)
      for (const reason of ["unreachable", "nacked"] as const) {
        const refusing = yield* answering({ _tag: "Refused", reason, detail: "not now" })
        const { post } = yield* Effect.provide(start({}, { worker: null }), refusing)
        for (const { dlq_id } of records) {
          const { body, status } = yield* post(`/dlq/messages/${dlq_id}/replay?force=true`)
          assert.strictEqual(status, 503)
          assert.match(body.detail, new RegExp(`refused \\(${reason}\\).*The record is unchanged`))
          const { body: _, ...expected } = records.find((record) => record.dlq_id === dlq_id) ?? deadLetter(0)
          const { body: __, replay_outcome: ___, ...kept } = (yield* store.get(dlq_id)) ?? deadLetter(0)
          assert.deepStrictEqual(kept, expected)
        }
      }
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
  )

  live("in progress keeps others away, and its lease ends in what nobody knows", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const source = yield* queue("source")
      yield* store.record(deadLetter(1, { source_queue_name: source }))
      yield* store.record(deadLetter(2, { source_queue_name: source }))
      const { get, post } = yield* start()
      const claim = (dlqId: string) => ({ dlqId, token: "t", force: false })
      yield* store.claim(claim("id-1"))
      yield* store.claim(claim("id-2"))
      yield* store.begin(claim("id-2"))
      for (const id of ["id-1", "id-2"]) {
        const { body, status } = yield* post(`/dlq/messages/${id}/replay?force=true`)
        assert.strictEqual(status, 409)
        assert.match(body.detail, /in progress/)
      }
      assert.strictEqual((yield* get("/dlq/messages/id-1")).body.state, "dead_lettered")
      // nothing was published with the claim alone, so it is nobody's after its lease
      yield* eventually(post("/dlq/messages/id-1/replay"), ({ status }) => status === 200)
      yield* eventually(post("/dlq/messages/id-2/replay"), ({ body }) => /by request t began/.test(String(body.detail)))
      assert.isFalse(yield* store.begin(claim("id-1")))
      assert.lengthOf(yield* drained(source), 1)
    }).pipe(Effect.scoped, Effect.provide(stores({ replay_lease_seconds: 4 }).pipe(Layer.provideMerge(doors))))
  )

  live("goes to its end when the client hangs up", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const source = yield* queue("source")
      yield* store.record(deadLetter(1, { source_queue_name: source }))
      const slow = yield* Effect.map(Broker, (broker) =>
        Layer.succeed(Broker, {
          ...broker,
          publish: (publication) => Effect.delay(broker.publish(publication), "2 seconds")
        })
      )
      const { url } = yield* Effect.provide(start({}, { worker: null }), slow)
      const request = yield* Effect.forkChild(
        Effect.promise((signal) => fetch(`${url}/dlq/messages/id-1/replay`, { method: "POST", signal }).catch(() => {}))
      )
      yield* eventually(store.get("id-1"), (record) => record?.state === "replay_unknown")
      yield* Fiber.interrupt(request)
      yield* eventually(store.get("id-1"), (record) => record?.state === "replayed")
      assert.lengthOf(yield* drained(source), 1)
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
  )
})

/** The broker, but for what it says to publishes, which it never sees. */
const answering = (outcome: Outcome) =>
  Effect.map(Broker, (broker) => Layer.succeed(Broker, { ...broker, publish: () => Effect.succeed(outcome) }))
