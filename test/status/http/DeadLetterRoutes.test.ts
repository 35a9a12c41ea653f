import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { ContractAliasConfig } from "../../../src/messaging/topology/Aliases.ts"
import { Broker, BrokerError } from "../../../src/services/Broker.ts"
import { DeadLetterStore } from "../../../src/status/dead-letters/DeadLetterStore.ts"
import * as RedisDLQStore from "../../../src/status/dead-letters/RedisDLQStore.ts"
import { StatusStore } from "../../../src/status/store/StatusStore.ts"
import { eventually } from "../../Eventually.ts"
import { drained, inMemory, queue, start, stores, variants } from "../DeadLetterServer.ts"
import { deadLetter } from "../DeadLetters.ts"

describe.each(variants)("dead letters over HTTP, $name", ({ doors, skip }) => {
  const live = skip ? it.live.skip : it.live

  live("lists what is indexed, newest first, a page at a time", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const { get } = yield* start()
      assert.deepStrictEqual((yield* get("/dlq/messages")).body, { items: [], next_cursor: null })
      for (let n = 0; n < 5; n++) yield* store.record(deadLetter(n))
      yield* store.record(deadLetter(4))
      const { body: first, status } = yield* get("/dlq/messages?limit=2")
      assert.strictEqual(status, 200)
      const { body: _, headers: __, properties: ___, raw_body_b64: ____, ...summary } = deadLetter(4)
      assert.deepStrictEqual(first.items[0], summary)
      yield* store.record(deadLetter("later"))
      const { body: second } = yield* get(`/dlq/messages?limit=2&cursor=${first.next_cursor}`)
      const { body: third } = yield* get(`/dlq/messages?limit=2&cursor=${second.next_cursor}`)
      const ids = [first, second, third].map(({ items }) => items.map(({ dlq_id }: { dlq_id: string }) => dlq_id))
      assert.deepStrictEqual(ids, [["id-4", "id-3"], ["id-2", "id-1"], ["id-0"]])
      assert.isNull(third.next_cursor)
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
  )

  live("filters by every field, and by several at once", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const { get } = yield* start()
      yield* store.record(deadLetter("a", { queue_name: "a.dlq", source_queue_name: "a", exception_type: null }))
      yield* store.record(deadLetter("b", { reason: "invalid_envelope", task_id: null }))
      yield* store.record(deadLetter("c", { state: "replayed", replayed_at: "2026-11-20T13:00:00+00:00" }))
      const ids = (query: string) =>
        Effect.map(get(`/dlq/messages?${query}`), ({ body }) =>
          body.items.map(({ dlq_id }: { dlq_id: string }) => dlq_id)
        )
      assert.deepStrictEqual(yield* ids("queue_name=a.dlq"), ["id-a"])
      assert.deepStrictEqual(yield* ids("source_queue_name=tasks"), ["id-c", "id-b"])
      assert.deepStrictEqual(yield* ids("reason=invalid_envelope"), ["id-b"])
      assert.deepStrictEqual(yield* ids("exception_type=RangeError"), ["id-c", "id-b"])
      assert.deepStrictEqual(yield* ids("has_exception=false"), ["id-a"])
      assert.deepStrictEqual(yield* ids("has_exception="), yield* ids(""))
      assert.deepStrictEqual(yield* ids("task_id=task-c"), ["id-c"])
      assert.deepStrictEqual(yield* ids("state=replayed"), ["id-c"])
      assert.deepStrictEqual(yield* ids("state=dead_lettered&queue_name=tasks.dlq"), ["id-b"])
      assert.deepStrictEqual(yield* ids("state=replayed&reason=invalid_envelope"), [])
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
  )

  live("refuses what it cannot take, by name", () =>
    Effect.gen(function* () {
      const { call, get, post } = yield* start()
      const where = ({ body, status }: { status: number; body: { detail: ReadonlyArray<{ loc: unknown }> } }) => [
        status,
        ...body.detail.map(({ loc }) => loc)
      ]
      for (const limit of ["0", "201", "-1", "x", "1.5", ""]) {
        assert.deepStrictEqual(where(yield* get(`/dlq/messages?limit=${limit}`)), [422, ["query", "limit"]], limit)
      }
      for (const cursor of ["", "x", "0", "-1", "99", "1".repeat(40), "id-1"]) {
        assert.deepStrictEqual(where(yield* get(`/dlq/messages?cursor=${cursor}`)), [422, ["query", "cursor"]], cursor)
        assert.deepStrictEqual(where(yield* get(`/dlq/groups?cursor=${cursor}`)), [422, ["query", "cursor"]], cursor)
        assert.deepStrictEqual(where(yield* get(`/dlq/replays?cursor=${cursor}`)), [422, ["query", "cursor"]], cursor)
      }
      assert.deepStrictEqual(where(yield* get("/dlq/messages?state=gone")), [422, ["query", "state"]])
      for (const wrong of ["has_exception=true", "has_exception=false&exception_type=RangeError"])
        assert.deepStrictEqual(where(yield* get(`/dlq/messages?${wrong}`)), [422, ["query", "has_exception"]], wrong)
      assert.deepStrictEqual(where(yield* post("/dlq/messages/x/replay?force=maybe")), [422, ["query", "force"]])
      assert.deepStrictEqual(where(yield* get(`/dlq/messages?reason=${"x".repeat(2_000)}&state=x`)), [
        422,
        ["query", "reason"],
        ["query", "state"]
      ])
      const bodies: ReadonlyArray<readonly [unknown, string]> = [
        ["{", ""],
        ["[]", ""],
        [{}, "ids"],
        [{ ids: ["a"], filter: { reason: "x" } }, "ids"],
        [{ ids: [] }, "ids"],
        [{ ids: [1] }, "ids"],
        [{ ids: Array.from({ length: 10_001 }, (_, n) => `i${n}`) }, "ids"],
        [{ filter: {} }, "filter"],
        [{ filter: [] }, "filter"],
        [{ filter: { nothing: "x" } }, "filter.nothing"],
        [{ filter: { reason: 1 } }, "filter.reason"],
        [{ filter: { reason: null } }, "filter.reason"],
        [{ filter: { state: "replayed" } }, "filter.state"],
        [{ filter: { state: "gone" }, force: true }, "filter.state"],
        [{ task_ids: [] }, "task_ids"],
        [{ task_ids: ["a"], ids: ["a"] }, "task_ids"],
        [{ ids: ["a"], force: "yes" }, "force"],
        [{ ids: ["a"], sure: true }, "sure"]
      ]
      for (const [body, name] of bodies) {
        assert.deepStrictEqual(
          where(yield* post("/dlq/replays", body)),
          [422, ["body", name]],
          JSON.stringify(body).slice(0, 99)
        )
      }
      const tooLong = yield* call("POST", "/dlq/replays", { ids: ["a"] }, { "idempotency-key": "k".repeat(256) })
      assert.deepStrictEqual(where(tooLong), [422, ["header", "Idempotency-Key"]])
      assert.strictEqual((yield* post("/dlq/replays", `{"ids":["${"x".repeat(2 ** 20)}"]}`)).status, 413)
      for (const path of ["/dlq/messages/none", "/dlq/replays/none"]) {
        const { body, status } = yield* get(path)
        assert.strictEqual(status, 404)
        assert.match(body.detail, /none/)
      }
      assert.strictEqual((yield* post("/dlq/messages/none/replay")).status, 404)
      assert.strictEqual((yield* post("/dlq/replays/none/cancel")).status, 404)
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
  )

  live("takes no id for the key of something else", () =>
    Effect.gen(function* () {
      const { get, post } = yield* start()
      const { body } = yield* post("/dlq/replays", { ids: ["none"] })
      yield* eventually(get(`/dlq/replays/${body.replay_id}`), ({ body }) => body.problems.length > 0)
      for (const id of ["ids", "problems", "begun"].map((name) => `${body.replay_id}:${name}`)) {
        for (const path of [id, encodeURIComponent(id)]) {
          assert.strictEqual((yield* get(`/dlq/replays/${path}`)).status, 404, path)
          assert.strictEqual((yield* post(`/dlq/replays/${path}/cancel`)).status, 404, path)
        }
      }
      for (const id of [":", "x:ids", `${body.replay_id}:ids`, "../stats"].map(encodeURIComponent)) {
        assert.strictEqual((yield* get(`/dlq/messages/${id}`)).status, 404, id)
        assert.strictEqual((yield* post(`/dlq/messages/${id}/replay`)).status, 404, id)
      }
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
  )

  live("shows one with its statuses and a diagnosis, under the names of clients", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const aliased = yield* start({
        aliasConfig: new ContractAliasConfig({ field_aliases: { task_id: "jobId" }, http_aliases: { task_id: "job" } })
      })
      const body = { task_id: "task-1", task_type: "index", payload: { task_id: "inner" } }
      const raw_body_b64 = Buffer.from(JSON.stringify(body)).toString("base64")
      yield* store.record(deadLetter(1, { body, raw_body_b64, reason: "invalid_envelope" }))
      yield* store.record(
        deadLetter(2, { raw_body_b64: Buffer.from([255]).toString("base64"), body: "/w==", body_encoding: "base64" })
      )
      const { body: detail, status } = yield* aliased.get("/dlq/messages/id-1")
      assert.strictEqual(status, 200)
      assert.strictEqual(detail.jobId, "task-1")
      assert.deepStrictEqual(detail.body, { jobId: "task-1", task_type: "index", payload: { task_id: "inner" } })
      assert.deepStrictEqual(detail.headers, deadLetter(1).headers)
      assert.deepStrictEqual(detail.latest_status, { jobId: "task-1", status: "failed" })
      assert.deepStrictEqual(
        detail.status_history.map(({ status }: { status: string }) => status),
        ["failed", "processing"]
      )
      assert.isUndefined(detail.task_id)
      assert.isUndefined(detail.raw_body_b64)
      assert.strictEqual(detail.diagnosis.envelope.task_type, "index")
      assert.match(detail.diagnosis.replay.warnings[0], /invalid_envelope again/)
      const { body: list } = yield* aliased.get("/dlq/messages?job=task-1")
      assert.deepStrictEqual(
        list.items.map(({ jobId }: { jobId: string }) => jobId),
        ["task-1"]
      )
      const { body: bytes } = yield* aliased.get("/dlq/messages/id-2")
      assert.deepStrictEqual([bytes.body_encoding, bytes.body], ["base64", "/w=="])
    }).pipe(Effect.scoped, Effect.provide(Layer.mergeAll(stores(), statuses).pipe(Layer.provideMerge(doors))))
  )

  live("shows numbers that JavaScript does not have as they came", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const { url } = yield* start()
      const text = (dlqId: string) => Effect.promise(async () => (await fetch(`${url}/dlq/messages/${dlqId}`)).text())
      for (const [n, body] of ['{"order":12345678901234567890}', "12345678901234567890"].entries()) {
        yield* store.record(deadLetter(n, { raw_body_b64: Buffer.from(body).toString("base64") }))
        const shown = yield* text(`id-${n}`)
        assert.include(shown, '"body_encoding":"json"')
        assert.include(shown, `"body":${body}`)
      }
      assert.deepStrictEqual((yield* store.get("id-0"))?.body, { order: 12345678901234567000 })
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
  )

  live("compares the index with the broker, queue by queue", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const [agreeing, more, bare] = [yield* queue("agreeing"), yield* queue("more"), yield* queue("bare")]
      const { get } = yield* start({ brokerDlqQueueNames: [bare, agreeing, `${bare}-nowhere`] })
      const fill = (queue: string, n: number) =>
        Effect.forEach(Array.from({ length: n }), () => publish(queue), { concurrency: "unbounded" })
      yield* store.record(deadLetter(1, { queue_name: agreeing }))
      yield* store.record(deadLetter(2, { queue_name: more, dead_lettered_at: "2026-11-21T12:00:00+00:00" }))
      yield* store.record(deadLetter(3, { queue_name: `${bare}-gone` }))
      yield* Effect.all([fill(agreeing, 1), fill(more, 3), fill(bare, 2)])
      const { body: indexed } = yield* get("/dlq/queues")
      const told = (queues: ReadonlyArray<Record<string, unknown>>) =>
        Object.fromEntries(
          queues.map(({ exists, indexed_count, message_count, queue_name, verdict }) => [
            queue_name,
            [indexed_count, exists, message_count, verdict]
          ])
        )
      const known = {
        [agreeing]: [1, true, 1, "agrees"],
        [more]: [1, true, 3, "not_indexed"],
        [`${bare}-gone`]: [1, false, null, "no_queue"]
      }
      assert.deepStrictEqual(told(indexed.queues), known)
      const names = indexed.queues.map(({ queue_name }: { queue_name: string }) => queue_name)
      assert.deepStrictEqual(names, names.toSorted())
      assert.strictEqual(
        indexed.queues.find(({ queue_name }: { queue_name: string }) => queue_name === more).last_indexed_at,
        "2026-11-21T12:00:00+00:00"
      )
      assert.deepStrictEqual([indexed.index.records, indexed.index.indexed_total], [3, 3])
      const { body: broker } = yield* get("/broker/dlq/queues")
      assert.deepStrictEqual(told(broker.queues), { ...known, [bare]: [0, true, 2, "not_indexed"] })
      const only = broker.queues.find(({ queue_name }: { queue_name: string }) => queue_name === bare)
      assert.isNull(only.last_indexed_at)
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
  )

  live("tells the times of dead letters, in whatever order they were indexed", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const { get, post } = yield* start()
      const source = yield* queue("source")
      const record = (id: string, time: string) =>
        store.record(
          deadLetter(id, {
            queue_name: "tasks.dlq",
            source_queue_name: source,
            dead_lettered_at: `2026-11-20T12:00:${time}+00:00`
          })
        )
      yield* record("newest", "05.000001")
      yield* record("newer", "05")
      yield* record("oldest", "01")
      yield* record("older", "02")
      const times = Effect.gen(function* () {
        const [queue] = (yield* get("/dlq/queues")).body.queues
        const [group] = (yield* get("/dlq/groups")).body.groups
        return [queue.last_indexed_at, group.oldest_dead_lettered_at, group.newest_dead_lettered_at].map((time) =>
          time.slice(17)
        )
      })
      assert.deepStrictEqual(yield* times, ["05.000001+00:00", "01+00:00", "05.000001+00:00"])
      assert.strictEqual((yield* post("/dlq/messages/id-newest/replay")).status, 200)
      assert.strictEqual((yield* post("/dlq/messages/id-oldest/replay")).status, 200)
      assert.deepStrictEqual(yield* times, ["05.000001+00:00", "02+00:00", "05+00:00"])
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
  )

  live("groups what is open by queue, reason and exception, and takes replayed ones out", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const source = yield* queue("source")
      const { get, post } = yield* start()
      for (let n = 0; n < 3; n++) {
        const dead_lettered_at = `2026-11-20T12:00:0${n}+00:00`
        const exception_message = `${n} ${"too many ".repeat(200)}`
        yield* store.record(deadLetter(n, { source_queue_name: source, dead_lettered_at, exception_message }))
      }
      yield* store.record(deadLetter("other", { source_queue_name: source, exception_type: null }))
      const count = Effect.map(get("/dlq/groups"), ({ body }) =>
        body.groups.map(({ count, exception_type }: { count: number; exception_type: string }) => [
          exception_type,
          count
        ])
      )
      assert.deepStrictEqual(yield* count, [
        [null, 1],
        ["RangeError", 3]
      ])
      const { body } = yield* get("/dlq/groups?limit=1")
      const { body: second } = yield* get(`/dlq/groups?limit=1&cursor=${body.next_cursor}`)
      const [{ trend, ...group }] = second.groups
      assert.isNull(body.groups[0].exception_message)
      assert.deepStrictEqual([trend.bucket_seconds, trend.counts.length], [3_600, 24])
      assert.deepStrictEqual(
        { ...second, groups: [group] },
        {
          groups: [
            {
              queue_name: "tasks.dlq",
              reason: "handler_error",
              exception_type: "RangeError",
              count: 3,
              newest_dead_lettered_at: "2026-11-20T12:00:02+00:00",
              oldest_dead_lettered_at: "2026-11-20T12:00:00+00:00",
              first_seen_at: "2026-11-20T12:00:00+00:00",
              last_seen_at: "2026-11-20T12:00:02+00:00",
              first_version: null,
              last_version: null,
              exception_message: `${`2 ${"too many ".repeat(200)}`.slice(0, 299)}…`,
              stack_line: null,
              replays: []
            }
          ],
          next_cursor: null
        }
      )
      yield* post("/dlq/messages/id-other/replay")
      assert.deepStrictEqual(yield* count, [["RangeError", 3]])
      assert.lengthOf(yield* drained(source), 1)
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
  )
})

const publish = (queue: string) =>
  Effect.flatMap(Broker, (broker) =>
    broker.publish({ purpose: "retries", exchange: "", routingKey: queue, content: Buffer.from("x"), properties: {} })
  )

/** Two of every task. */
const statuses = Layer.succeed(StatusStore, {
  store: () => Effect.succeed("stored" as const),
  latest: () => Effect.undefined,
  childTaskIds: () => Effect.succeed([]),
  live: () => Effect.succeed(Stream.empty),
  history: (task_id) =>
    Effect.succeed({
      newest: 2,
      oldest: 1,
      events: ["processing", "failed"].map((status, n) => ({
        sequence: n + 1,
        eventId: `e${n}`,
        status,
        json: JSON.stringify({ task_id, status })
      }))
    })
})

describe("dead letters over HTTP", () => {
  it.live("wait for a broker that is away once, and not for each queue", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      for (let n = 0; n < 40; n++) yield* store.record(deadLetter(n, { queue_name: `tasks.${n}.dlq` }))
      let waits = 0
      const away = { ...(yield* Broker) }
      const inspect = () =>
        Effect.suspend(() => {
          waits++
          return Effect.delay(
            Effect.fail(new BrokerError({ operation: "inspect", reason: "unreachable", message: "Nobody is there." })),
            "50 millis"
          )
        })
      const { get } = yield* Effect.provideService(start(), Broker, { ...away, inspect })
      const { queues } = (yield* get("/dlq/queues")).body
      assert.lengthOf(queues, 40)
      for (const { exists, message_count, verdict } of queues) {
        assert.deepStrictEqual([exists, message_count, verdict], [null, null, "no_answer"])
      }
      assert.isAtMost(waits, 16)
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(inMemory))))
  )

  it.live("have no routes of replay jobs where nobody provides jobs", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      yield* store.record(deadLetter(1))
      const { get, post } = yield* start({}, { worker: null })
      assert.strictEqual((yield* get("/dlq/messages/id-1")).status, 200)
      for (const path of ["/dlq/replays", "/dlq/replays/x/cancel"]) {
        assert.strictEqual((yield* post(path, { ids: ["id-1"] })).status, 404)
      }
    }).pipe(Effect.scoped, Effect.provide(RedisDLQStore.layer().pipe(Layer.provideMerge(inMemory))))
  )
})
