import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import * as Handler from "../../../src/messaging/consume/Handler.ts"
import * as TaskConsumer from "../../../src/messaging/consume/TaskConsumer.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import { ContractAliasConfig } from "../../../src/messaging/topology/Aliases.ts"
import { RetryPolicy } from "../../../src/messaging/topology/RetryPolicy.ts"
import { Broker, type Properties } from "../../../src/services/Broker.ts"
import { DeadLetterStore } from "../../../src/status/dead-letters/DeadLetterStore.ts"
import * as QueuedLetters from "../../../src/status/dead-letters/QueuedLetters.ts"
import * as RedisDLQStore from "../../../src/status/dead-letters/RedisDLQStore.ts"
import { eventually } from "../../Eventually.ts"
import { shared } from "../../messaging/SampleTopologies.ts"
import { TemporaryNames } from "../../TemporaryNames.ts"
import { drained, inMemory, queue, start, stores, variants } from "../DeadLetterServer.ts"

/** A worker that fails on every task, and so many tasks for it; answers its queue and their dead-letter queue. */
const failed = Effect.fnUntraced(function* (tasks: number, retryPolicy = new RetryPolicy({ max_retries: 0 })) {
  const names = yield* TemporaryNames
  const topology = shared({
    tasks_exchange: names.exchange("tasks"),
    tasks_queue: names.queue("tasks"),
    status_exchange: names.exchange("status"),
    status_queue: names.queue("status")
  })
  const source = topology.tasks.queue
  const letters = names.queue("tasks.dlq")
  const dlqStore = yield* DeadLetterStore
  yield* Effect.gen(function* () {
    yield* Layer.build(
      TaskConsumer.layer({
        retryPolicy,
        dlqStore,
        handler: Handler.make(() => Effect.fail(new RangeError("no such page")))
      })
    )
    const { publishTask } = yield* BrokerClient
    for (let n = 1; n <= tasks; n++) yield* publishTask({ task_id: `t${n}` })
    yield* eventually(count(letters), (messages) => messages === tasks)
    yield* eventually(dlqStore.totals, ({ records }) => records === tasks)
  }).pipe(Effect.scoped, Effect.provide(BrokerClient.layer({ topology })))
  return { source, letters }
})

const count = (queue: string) =>
  Effect.flatMap(Broker, ({ inspect }) =>
    Effect.map(inspect(queue), (found) => (found._tag === "Some" ? found.value.messages : 0))
  )

/** The headers that tell a dead letter of the library. */
const written = {
  "x-svc-source-queue": "q",
  "x-svc-failure-reason": "r",
  "x-svc-dead-lettered-at": "2026-01-01T00:00:00Z"
}

const put = (queue: string, content: string, properties: Properties = { headers: written }) =>
  Effect.flatMap(Broker, ({ publish }) =>
    publish({ purpose: "retries", exchange: "", routingKey: queue, content: Buffer.from(content), properties })
  )

const records = Effect.flatMap(DeadLetterStore, ({ list }) =>
  Effect.map(list({}, { limit: 200 }), ({ items }) =>
    items
      .map(({ exception_message: _, ...record }) => ({ ...record, retry_queue_name: null }))
      .sort((one, other) => (one.dlq_id < other.dlq_id ? -1 : 1))
  )
)

describe.each(variants)("the messages of a dead-letter queue, $name", ({ doors, skip }) => {
  it.live.skipIf(skip)("are indexed again by the same ids after a loss of Redis, and twice is once", () =>
    Effect.gen(function* () {
      const { before, letters, source } = yield* Effect.gen(function* () {
        return { ...(yield* failed(5)), before: yield* records }
      }).pipe(Effect.provide(stores({ prefix: "lost" })))
      yield* Effect.gen(function* () {
        const { get, post } = yield* start()
        const ask = post("/dlq/queues/index", { queue_name: letters })
        const answer = { queue_name: letters, messages: 5, foreign: 0, truncated: false }
        assert.deepStrictEqual(yield* ask, { status: 200, body: { ...answer, indexed: 5, known: 0 } })
        assert.deepStrictEqual(yield* ask, { status: 200, body: { ...answer, indexed: 0, known: 5 } })
        assert.deepStrictEqual(yield* records, before)
        // every message is where it was, in its order
        yield* eventually(count(letters), (messages) => messages === 5)
        const [first] = before
        const replayed = yield* post(`/dlq/messages/${first?.dlq_id}/replay`)
        assert.deepInclude(replayed.body, { state: "replayed", target_queue_name: source })
        const [again] = yield* drained(source)
        assert.notProperty(again?.properties.headers, "x-svc-dead-lettered-at")
        assert.deepInclude((yield* get("/dlq/queues")).body.queues[0], { verdict: "agrees", indexed_count: 5 })
        const ids = (yield* drained(letters)).map(({ content }) => JSON.parse(Buffer.from(content).toString()).task_id)
        assert.deepStrictEqual(ids, ["t1", "t2", "t3", "t4", "t5"])
      }).pipe(Effect.provide(stores({ prefix: "found" })))
    }).pipe(Effect.scoped, Effect.provide(doors))
  )

  it.live.skipIf(skip)("leave their queue once they were replayed, and only then", () =>
    Effect.gen(function* () {
      const { letters, source } = yield* failed(4)
      const { get, post } = yield* start()
      const done = (yield* records).slice(0, 2)
      for (const { dlq_id } of done) yield* post(`/dlq/messages/${dlq_id}/replay`)
      const ask = post("/dlq/queues/remove-replayed", { queue_name: letters })
      const answer = { queue_name: letters, foreign: 0, truncated: false }
      assert.deepStrictEqual((yield* ask).body, { ...answer, messages: 4, removed: 2, kept: 2 })
      yield* eventually(count(letters), (messages) => messages === 2)
      assert.deepStrictEqual((yield* ask).body, { ...answer, messages: 2, removed: 0, kept: 2 })
      assert.lengthOf(yield* drained(source), 2)
      yield* eventually(count(letters), (messages) => messages === 2)
      assert.deepInclude((yield* get("/dlq/queues")).body.queues[0], {
        verdict: "agrees",
        message_count: 2,
        replayed_count: 2
      })
      const left = (yield* drained(letters)).map(({ content }) => JSON.parse(Buffer.from(content).toString()).task_id)
      const doneIds = done.map(({ task_id }) => task_id)
      assert.deepStrictEqual(
        left,
        ["t1", "t2", "t3", "t4"].filter((id) => !doneIds.includes(id))
      )
    }).pipe(Effect.scoped, Effect.provide(stores()), Effect.provide(doors))
  )

  it.live.skipIf(skip)("are left alone where no worker of the library wrote them", () =>
    Effect.gen(function* () {
      const letters = yield* queue("foreign.dlq")
      const headers = [
        {},
        { "x-svc-source-queue": "q", "x-svc-failure-reason": "r" },
        { "x-svc-source-queue": "q", "x-svc-failure-reason": "r", "x-svc-dead-lettered-at": "soon" }
      ]
      for (const given of headers) yield* put(letters, "{}", { headers: given })
      const { post } = yield* start()
      const walked = { queue_name: letters, messages: 3, foreign: 3, truncated: false }
      assert.deepStrictEqual((yield* post("/dlq/queues/index", { queue_name: letters })).body, {
        ...walked,
        indexed: 0,
        known: 0
      })
      yield* eventually(count(letters), (messages) => messages === 3)
      assert.deepStrictEqual((yield* post("/dlq/queues/remove-replayed", { queue_name: letters })).body, {
        ...walked,
        removed: 0,
        kept: 0
      })
      yield* eventually(count(letters), (messages) => messages === 3)
      yield* drained(letters)
    }).pipe(Effect.scoped, Effect.provide(stores()), Effect.provide(doors))
  )

  it.live.skipIf(skip)("stay in a quorum queue that drops what is given back too often, whoever wrote them", () =>
    Effect.gen(function* () {
      const letters = (yield* TemporaryNames).queue("quorum.dlq")
      const broker = yield* Broker
      const ofQuorum = { "x-queue-type": "quorum", "x-delivery-limit": 2 }
      yield* broker.declare({ exchanges: [], queues: [{ name: letters, arguments: ofQuorum }], bindings: [] })
      const elsewhere = yield* queue("elsewhere")
      const described = { contentType: "text/plain", correlationId: "c", messageId: "m", priority: 3 }
      for (const content of ["1", "2", "3"]) {
        const ours = content === "3" ? { "x-death": "why", CC: [elsewhere] } : written
        yield* put(letters, content, { ...described, headers: { ...ours, "x-more": [1, { a: null }] } })
      }
      yield* drained(elsewhere)
      const { post } = yield* start()
      const walked = { queue_name: letters, messages: 3, foreign: 1, truncated: false }
      for (let walks = 0; walks < 6; walks++) {
        const path = walks % 2 === 0 ? "index" : "remove-replayed"
        assert.deepInclude((yield* post(`/dlq/queues/${path}`, { queue_name: letters })).body, walked)
        yield* eventually(count(letters), (messages) => messages === 3)
      }
      const kept = (yield* drained(letters)).map(({ content, properties: { headers, ...rest } }) => {
        const { "x-delivery-count": _, ...given } = headers ?? {}
        return { content: Buffer.from(content).toString(), headers: given, ...rest }
      })
      const same = { ...described, persistent: true }
      assert.deepStrictEqual(kept, [
        { content: "1", headers: { ...written, "x-more": [1, { a: null }] }, ...same },
        { content: "2", headers: { ...written, "x-more": [1, { a: null }] }, ...same },
        { content: "3", headers: { "x-death": "why", "x-more": [1, { a: null }] }, ...same }
      ])
      assert.lengthOf(yield* drained(elsewhere), 0)
    }).pipe(Effect.scoped, Effect.provide(stores()), Effect.provide(doors))
  )

  it.live.skipIf(skip)("are not all looked at while somebody else holds some", () =>
    Effect.gen(function* () {
      const letters = yield* queue("held.dlq")
      for (const content of ["1", "2", "3"]) yield* put(letters, content)
      const other = yield* (yield* Broker).channel({ prefetch: 1 })
      const store = yield* DeadLetterStore
      const taking = DeadLetterStore.of({
        ...store,
        record: (record) => Effect.andThen(Effect.orDie(other.get(letters)), store.record(record))
      })
      const { post } = yield* start().pipe(Effect.provideService(DeadLetterStore, taking))
      assert.deepInclude((yield* post("/dlq/queues/index", { queue_name: letters })).body, {
        messages: 2,
        indexed: 2,
        truncated: true
      })
    }).pipe(Effect.scoped, Effect.provide(stores()), Effect.provide(doors))
  )

  it.live.skipIf(skip)("that are archived are looked for until a walk has reached the end of their queue", () =>
    Effect.gen(function* () {
      const letters = yield* queue("archived.dlq")
      for (const content of ["1", "2"]) yield* put(letters, content)
      const { post } = yield* start()
      yield* post("/dlq/queues/index", { queue_name: letters })
      const { archive, archivedCopies, list } = yield* DeadLetterStore
      const { items } = yield* list({}, { limit: 2 })
      const id = items[1]?.dlq_id ?? ""
      yield* eventually(count(letters), (messages) => messages === 2)
      yield* archive(id, { reason: "x", by: null })
      const { removeArchived } = yield* QueuedLetters.make
      const walk = removeArchived(letters, new ContractAliasConfig(), 60_000)
      const broker = yield* Broker
      yield* Effect.gen(function* () {
        // Another consumer takes the archived one after the walk has begun.
        yield* (yield* broker.channel({ prefetch: 1 })).get(letters)
        const inspect: typeof broker.inspect = (queue) =>
          Effect.map(
            broker.inspect(queue),
            Option.map((found) => ({ ...found, messages: 2 }))
          )
        for (let walks = 0; walks < 4; walks++) {
          yield* Effect.provideService(walk, Broker, Broker.of({ ...broker, inspect }))
          yield* eventually(count(letters), (messages) => messages === 1)
        }
        assert.deepStrictEqual(yield* archivedCopies.of(letters), [id])
        assert.isUndefined(yield* archivedCopies.take(1))
      }).pipe(Effect.scoped)
      yield* eventually(count(letters), (messages) => messages === 2)
      yield* walk
      yield* eventually(count(letters), (messages) => messages === 1)
      assert.deepStrictEqual(yield* archivedCopies.of(letters), [])
    }).pipe(Effect.scoped, Effect.provide(stores()), Effect.provide(doors))
  )

  it.live.skipIf(skip)("are known by any time that workers write, also that of a leap day", () =>
    Effect.gen(function* () {
      const letters = yield* queue("times.dlq")
      const times = ["2028-02-29T00:00:00Z", "2026-01-01T00:00:00.000001Z", "2027-02-29T00:00:00Z", "2026-01-01 00:00"]
      for (const at of times) yield* put(letters, "{}", { headers: { ...written, "x-svc-dead-lettered-at": at } })
      const { post } = yield* start()
      assert.deepInclude((yield* post("/dlq/queues/index", { queue_name: letters })).body, { indexed: 2, foreign: 2 })
    }).pipe(Effect.scoped, Effect.provide(stores()), Effect.provide(doors))
  )

  it.live.skipIf(skip)("are not looked for in the queues of workers", () =>
    Effect.gen(function* () {
      const working = yield* queue("working")
      const { post } = yield* start({ brokerDlqQueueNames: ["named"] })
      for (const path of ["/dlq/queues/index", "/dlq/queues/remove-replayed"]) {
        const refused = yield* post(path, { queue_name: working })
        assert.strictEqual(refused.status, 422)
        assert.match(refused.body.detail, /is not known as a dead-letter queue/)
        assert.strictEqual((yield* post(path, { queue_name: "named" })).status, 404)
        assert.strictEqual((yield* post(path, { queue_name: "missing.dlq" })).status, 404)
        for (const body of [undefined, "[", {}, { queue_name: 7 }, { queue_name: "a.dlq", more: 1 }]) {
          const { status } = yield* post(path, body)
          assert.strictEqual(status, 422, JSON.stringify(body))
        }
      }
    }).pipe(Effect.scoped, Effect.provide(stores()), Effect.provide(doors))
  )
})

describe("the store of dead letters", () => {
  it.live("says which records are new", () =>
    Effect.gen(function* () {
      const { letters } = yield* failed(1)
      const { get, list, record } = yield* DeadLetterStore
      const { items } = yield* list({ queue_name: letters }, { limit: 1 })
      const found = yield* get(items[0]?.dlq_id ?? "")
      assert.isDefined(found)
      assert.isFalse(yield* record(found))
      assert.isTrue(yield* record({ ...found, dlq_id: "another" }))
    }).pipe(Effect.scoped, Effect.provide(RedisDLQStore.layer()), Effect.provide(inMemory))
  )
})
