import { randomUUID } from "node:crypto"
import { assert, layer as describeWith } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import * as BrokerMemory from "../../../layers/BrokerMemory.ts"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import * as ExactJson from "../../../src/messaging/envelope/ExactJson.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import { ContractAliasConfig } from "../../../src/messaging/topology/Aliases.ts"
import { SharedTasksSharedStatusTopology } from "../../../src/messaging/topology/TaskTopology.ts"
import { declarations } from "../../../src/messaging/topology/Topology.ts"
import { Broker, type BrokerError } from "../../../src/services/Broker.ts"
import type { Redis } from "../../../src/services/Redis.ts"
import * as History from "../../../src/status/history/History.ts"
import type * as StatusRoutes from "../../../src/status/http/StatusRoutes.ts"
import * as RedisStatusStore from "../../../src/status/store/RedisStatusStore.ts"
import { StatusStore } from "../../../src/status/store/StatusStore.ts"
import { eventually } from "../../Eventually.ts"
import { logged } from "../../messaging/Logged.ts"
import * as RunningBroker from "../../RunningBroker.ts"
import * as TemporaryPrefix from "../../TemporaryPrefix.ts"
import { event } from "../Events.ts"
import * as FaultyStore from "../FaultyStore.ts"
import { served } from "../Served.ts"

const task = () => `task ${randomUUID()}/é`

const store = (id: string, ...ids: ReadonlyArray<string>) =>
  Effect.flatMap(StatusStore, (store) => Effect.forEach(ids, (one) => store.store(event(id, one)), { discard: true }))

const get = (url: string, init: RequestInit = {}) =>
  Effect.promise(async () => {
    const answer = await fetch(url, init)
    const text = await answer.text()
    return { status: answer.status, text, body: text === "" ? undefined : JSON.parse(text), headers: answer.headers }
  })

/** The ids of the events of each answer, until one is the last. */
const pages = (url: string, start = "first"): Effect.Effect<ReadonlyArray<string>> =>
  Effect.flatMap(get(`${url}&start_offset=${start}`), ({ body }) => {
    const page = body.events.map((event: { readonly event_id: string }) => event.event_id).join(" ")
    return body.truncated
      ? Effect.map(pages(url, body.next_offset), (others) => [page, ...others])
      : Effect.succeed([page])
  })

const named = (what: string) => `svc-test-${randomUUID()}.${what}`

const topologyOf = (more: { readonly status_use_streams?: boolean } = {}) =>
  new SharedTasksSharedStatusTopology({
    status_exchange: named("status"),
    status_queue: named("status.queue"),
    tasks_exchange: named("tasks"),
    tasks_queue: named("tasks.queue"),
    tasks_routing_key: "tasks",
    ...more
  })

/** A topology at work, its status queue to be read by routes on a socket. */
const scanned = Effect.fnUntraced(function* (
  topology: SharedTasksSharedStatusTopology,
  options: Partial<History.Options> = {},
  routes: StatusRoutes.Options = {}
) {
  const broker = yield* Broker
  const { exchanges, queues } = declarations(topology)
  yield* Effect.addFinalizer(() =>
    Effect.orDie(
      broker.remove({ exchanges: exchanges.map(({ name }) => name), queues: queues.map(({ name }) => name) })
    )
  )
  const client = yield* BrokerClient.make({ topology })
  yield* client.initialize
  const history = History.layer({ topology, ...options }).pipe(Layer.provide(Layer.succeed(Broker, broker)))
  const { url } = yield* served({}, routes, history)
  const publish = (id: string, ...ids: ReadonlyArray<string>) =>
    Effect.forEach(ids, (one) => client.publishStatus(event(id, one, { status: one })), { discard: true })
  return { url, publish, broker }
})

const suite = <E>(name: string, redis: Layer.Layer<Redis, E>, broker: Layer.Layer<Broker, BrokerError>) =>
  describeWith(
    FaultyStore.layer.pipe(
      Layer.provide(RedisStatusStore.layer({ history_maxlen: 5 })),
      Layer.provide(redis),
      Layer.provideMerge(broker)
    ),
    { excludeTestServices: true }
  )(`status routes: ${name}`, (it) => {
    it.effect("answer with the latest status of a task", () =>
      Effect.gen(function* () {
        const id = task()
        const { url } = yield* served()
        yield* store(id, "e1", "e2")
        const { body, headers, status } = yield* get(`${url}/status/${encodeURIComponent(id)}`)
        assert.deepStrictEqual([status, body], [200, { task_id: id, event: event(id, "e2") }])
        assert.strictEqual(headers.get("content-type"), "application/json")
        const unknown = yield* get(`${url}/status/nobody`)
        assert.deepStrictEqual(
          [unknown.status, unknown.body],
          [404, { detail: 'No status is stored for task_id "nobody".' }]
        )
        assert.deepInclude(yield* get(`${url}/status/${"x".repeat(300)}`), { status: 422 })
        assert.deepInclude(yield* get(`${url}/status/t`, { method: "DELETE" }), { status: 405 })
      })
    )

    it.effect("answer with the kept history, oldest first", () =>
      Effect.gen(function* () {
        const id = task()
        const { url } = yield* served()
        yield* store(id, "e1", "e2", "e3", "e4", "e5", "e6")
        const of = (query: string) =>
          Effect.map(get(`${url}/history?task_id=${encodeURIComponent(id)}${query}`), ({ body, status }) => [
            status,
            body.count,
            body.events.map((event: { readonly event_id: string }) => event.event_id).join(" "),
            body.task_id === id,
            body.truncated
          ])
        assert.deepStrictEqual(yield* of(""), [200, 5, "e2 e3 e4 e5 e6", true, undefined])
        assert.deepStrictEqual(yield* of("&start_offset=last"), [200, 1, "e6", true, undefined])
        assert.deepStrictEqual(yield* of("&start_offset=4"), [200, 3, "e4 e5 e6", true, undefined])
        assert.deepStrictEqual(yield* of("&max_scan=2&max_seconds=1.5"), [200, 2, "e2 e3", true, true])
        const nobody = yield* get(`${url}/history?task_id=nobody`)
        assert.deepStrictEqual(nobody.body, { count: 0, events: [], task_id: "nobody", next_offset: 1 })
      })
    )

    it.effect("give a history page by page, and say when its front is gone", () =>
      Effect.gen(function* () {
        const id = task()
        const { url } = yield* served()
        const of = `${url}/history?task_id=${encodeURIComponent(id)}`
        yield* store(id, "e1", "e2", "e3", "e4", "e5")
        assert.deepStrictEqual(yield* pages(`${of}&max_scan=2`), ["e1 e2", "e3 e4", "e5"])
        const { body: read } = yield* get(`${of}&max_scan=2`)
        assert.deepInclude(read, { next_offset: 3, oldest_offset: 1 })
        yield* store(id, "e6", "e7", "e8", "e9")
        const { body } = yield* get(`${of}&max_scan=2&start_offset=${read.next_offset}`)
        assert.deepInclude(body, { count: 2, truncated: true, next_offset: 7, oldest_offset: 5 })
        const end = yield* get(`${of}&start_offset=10`)
        assert.deepInclude(end.body, { count: 0, next_offset: 10 })
      })
    )

    it.effect("name every parameter of the history that they cannot take", () =>
      Effect.gen(function* () {
        const { url } = yield* served()
        const names = (query: string) =>
          Effect.map(get(`${url}/history?${query}`), ({ body, status }) => [
            status,
            ...body.detail.map(({ loc }: { readonly loc: ReadonlyArray<string> }) => loc.join("."))
          ])
        assert.deepStrictEqual(yield* names(""), [422, "query.task_id"])
        assert.deepStrictEqual(yield* names("task_id=%20&start_offset=-1&max_seconds=0&max_scan=0&source=disk"), [
          422,
          "query.source",
          "query.task_id",
          "query.start_offset",
          "query.max_seconds",
          "query.max_scan"
        ])
        assert.deepStrictEqual(yield* names("task_id=t&max_scan=10001&max_seconds=11"), [
          422,
          "query.max_seconds",
          "query.max_scan"
        ])
        assert.deepStrictEqual(yield* names("task_id=t&source=stream"), [422, "query.source"])
      })
    )

    it.effect("name things as the contract does, in paths, queries and bodies", () =>
      Effect.gen(function* () {
        const id = task()
        const aliasConfig = new ContractAliasConfig({
          field_aliases: { task_id: "attempt_id" },
          http_aliases: { task_id: "attempt-id" }
        })
        const { url } = yield* served(
          {},
          {
            aliasConfig,
            statusPath: "/api/{attempt-id}/latest",
            historyPath: "/api/history",
            latestOutputAdapter: (event) => ({ ...event, adapted: true })
          }
        )
        yield* store(id, "e1")
        const { task_id: _, ...rest } = event(id, "e1")
        const latest = yield* get(`${url}/api/${encodeURIComponent(id)}/latest`)
        assert.deepStrictEqual(latest.body, { attempt_id: id, event: { ...rest, attempt_id: id, adapted: true } })
        const history = yield* get(`${url}/api/history?attempt-id=${encodeURIComponent(id)}`)
        assert.deepStrictEqual(history.body, {
          count: 1,
          events: [{ ...rest, attempt_id: id }],
          attempt_id: id,
          next_offset: 2,
          oldest_offset: 1
        })
        const unknown = yield* get(`${url}/api/nobody/latest`)
        assert.strictEqual(unknown.body.detail, 'No status is stored for attempt_id "nobody".')
        assert.deepInclude(yield* get(`${url}/status/${encodeURIComponent(id)}`), { status: 404 })
      })
    )

    it.effect("give numbers that JavaScript does not have as they came, and adapters both", () =>
      Effect.gen(function* () {
        const id = task()
        const path = encodeURIComponent(id)
        const { store } = yield* StatusStore
        yield* store({ ...event(id, "e1"), meta: { order: ExactJson.parse("12345678901234567890") } })
        const renaming = yield* served(
          {},
          { aliasConfig: new ContractAliasConfig({ field_aliases: { task_id: "id" } }) }
        )
        const adapting = yield* served(
          {},
          {
            latestOutputAdapter: ({ meta }, exact) => ({ meta, exact: exact["meta"] }),
            historyOutputAdapter: (_, exact) => exact
          }
        )
        const meta = '"meta":{"order":12345678901234567890}'
        assert.include((yield* get(`${renaming.url}/status/${path}`)).text, meta)
        assert.include(
          (yield* get(`${adapting.url}/status/${path}`)).text,
          '{"meta":{"order":12345678901234567000},"exact":{"order":12345678901234567890}}'
        )
        assert.include((yield* get(`${adapting.url}/history?task_id=${path}`)).text, meta)
      })
    )

    it.effect("are a 500, with a log line, where an output adapter throws", () => {
      const log = logged()
      return Effect.gen(function* () {
        const id = task()
        const { store } = yield* StatusStore
        yield* store(event(id, "e1"))
        const throwing = () => {
          throw new Error("not this one")
        }
        const { url } = yield* served({}, { latestOutputAdapter: throwing, historyOutputAdapter: throwing })
        for (const path of [`/status/${encodeURIComponent(id)}`, `/history?task_id=${encodeURIComponent(id)}`]) {
          const { body, status } = yield* get(url + path)
          assert.strictEqual(status, 500)
          assert.match(body.detail, /The reason is in its log/)
        }
        const line = "A GET request failed with 500, because its handler threw an unexpected error Error: not this one"
        assert.deepStrictEqual(log.lines(), [line, line])
      }).pipe(Effect.provide(log.layer))
    })

    it.effect("give the numbers of the broker's stream as they came", () =>
      Effect.gen(function* () {
        const topology = topologyOf()
        const { broker, url } = yield* scanned(topology)
        const { exchange } = topology.status
        const content = Buffer.from('{"documentId":9007199254740993,"status":"a","result":{"order":1e400}}')
        yield* broker.publish({ purpose: "statuses", exchange, routingKey: "t", content, properties: {} })
        const { text } = yield* get(`${url}/history?source=stream&task_id=9007199254740993`)
        assert.include(text, '"result":{"order":1e400}')
      })
    )

    it.effect("say when the store cannot be read", () =>
      Effect.gen(function* () {
        const { url } = yield* served()
        const faults = yield* FaultyStore.Faults
        faults.down = true
        const latest = yield* get(`${url}/status/t`)
        const history = yield* get(`${url}/history?task_id=t`)
        faults.down = false
        assert.deepStrictEqual([latest.status, history.status], [503, 503])
        assert.strictEqual(latest.headers.get("retry-after"), "1")
        assert.deepStrictEqual(latest.body, { detail: "The status store cannot be read now: try again in a moment." })
      })
    )

    it.effect("read the broker's status stream for who asks for it, past the first terminal status", () =>
      Effect.gen(function* () {
        const { publish, url } = yield* scanned(topologyOf())
        yield* publish("t1", "queued", "failed")
        yield* publish("t2", "queued")
        yield* publish("t1", "processing", "completed")
        const of = (query: string) =>
          Effect.map(get(`${url}/history?source=stream${query}`), ({ body, status }) => [
            status,
            body.events?.map((event: { readonly status: string }) => event.status).join(" "),
            body.task_id,
            body.truncated
          ])
        const whole = "queued failed processing completed"
        assert.deepStrictEqual(yield* of("&task_id=t1"), [200, whole, "t1", undefined])
        assert.deepStrictEqual(yield* of("&task_id=t1&max_scan=2"), [200, "queued failed", "t1", true])
        assert.deepStrictEqual(yield* of("&max_seconds=5"), [
          200,
          "queued failed queued processing completed",
          undefined,
          undefined
        ])
        assert.deepStrictEqual(yield* of("&task_id=t1&start_offset=3"), [200, "processing completed", "t1", undefined])
        assert.deepStrictEqual(yield* of("&task_id=t1&start_offset=100"), [200, "", "t1", undefined])
        assert.deepStrictEqual((yield* of(""))[0], 422)
        // the stream is as it was
        assert.deepStrictEqual(yield* of("&task_id=t1"), [200, whole, "t1", undefined])
      })
    )

    it.effect("show nothing of the broker's stream that is not to be stored", () =>
      Effect.gen(function* () {
        const seen = (history: Partial<History.Options>) =>
          Effect.gen(function* () {
            const topology = topologyOf()
            const { broker, url } = yield* scanned(topology, { source: "stream", ...history })
            const { exchange } = topology.status
            const content = Buffer.from('{"task_id":"t","status":"a","meta":{"auth_token":"s3cret","page":1}}')
            yield* broker.publish({ purpose: "statuses", exchange, routingKey: "t", content, properties: {} })
            return (yield* get(`${url}/history?task_id=t`)).body.events[0].meta
          })
        assert.deepStrictEqual(yield* seen({}), { page: 1 })
        assert.deepStrictEqual(yield* seen({ sanitizeMetaKeys: ["page"] }), { auth_token: "s3cret" })
      })
    )

    it.effect("give the broker's stream page by page, each event once", () =>
      Effect.gen(function* () {
        const { publish, url } = yield* scanned(topologyOf())
        const named = (count: number) => Array.from({ length: count }, (_, n) => `s${n}`)
        // at once, so that many share a chunk of the stream
        yield* Effect.forEach(named(10), (one) => Effect.all([publish("t1", one), publish("t2", one)]), {
          concurrency: "unbounded"
        })
        const whole = yield* pages(`${url}/history?source=stream&task_id=t1`)
        const paged = yield* pages(`${url}/history?source=stream&task_id=t1&max_scan=3`)
        assert.deepStrictEqual(
          paged.map((page) => page.split(" ").length),
          [3, 3, 3, 1]
        )
        assert.deepStrictEqual([paged.join(" ")], whole)
        assert.deepStrictEqual(paged.join(" ").split(" ").toSorted(), named(10))
        const { body } = yield* get(`${url}/history?source=stream&task_id=t1&start_offset=100`)
        assert.deepInclude(body, { count: 0, next_offset: 100 })
      })
    )

    it.effect("stop a scan at its bounds, and say so", () =>
      Effect.gen(function* () {
        const { publish, url } = yield* scanned(topologyOf(), { source: "stream", maxMessages: 3 })
        yield* publish("t1", "a")
        yield* publish("t2", "b", "c", "d")
        yield* publish("t1", "e")
        const { body } = yield* get(`${url}/history?task_id=t1`)
        assert.deepInclude(body, { count: 1, truncated: true, next_offset: 3 })
      })
    )

    it.effect("refuse a status queue that is no stream, or read it and leave it as it is", () =>
      Effect.gen(function* () {
        const topology = topologyOf({ status_use_streams: false })
        const strict = yield* scanned(topology, { source: "stream" })
        const refused = yield* get(`${strict.url}/history?task_id=t1`)
        assert.strictEqual(refused.status, 400)
        assert.include(refused.body.detail, topology.status.queue)
        const { broker, publish, url } = yield* scanned(topology, { source: "stream" }, { requireStream: false })
        yield* publish("t1", "queued", "completed")
        for (const _ of [1, 2]) {
          const { body } = yield* get(`${url}/history?task_id=t1`)
          assert.strictEqual(body.count, 2)
          assert.isUndefined(body.next_offset)
        }
        yield* broker.remove({ queues: [topology.status.queue] })
        assert.deepInclude(yield* get(`${url}/history?task_id=t1`), { status: 404 })
      })
    )

    it.effect("take nothing out of a status queue that has a consumer, which would get it out of order", () =>
      Effect.gen(function* () {
        const topology = topologyOf({ status_use_streams: false })
        const { broker, publish, url } = yield* scanned(topology, { source: "stream" }, { requireStream: false })
        const ask = get(`${url}/history?task_id=t1`)
        const met: Array<string> = []
        yield* Effect.scoped(
          Effect.gen(function* () {
            const consumer = yield* broker.consume({
              queue: topology.status.queue,
              prefetch: 1,
              onDelivery: ({ content, settle }) => {
                met.push(JSON.parse(Buffer.from(content).toString()).status)
                settle("ack")
              }
            })
            const scan = yield* Effect.forkChild(ask)
            yield* publish("t1", "queued", "running", "completed")
            const { body, status } = yield* Fiber.join(scan)
            assert.strictEqual(status, 409)
            assert.match(body.detail, /has a consumer.*Use source=store/)
            yield* eventually(Effect.succeed(met), ({ length }) => length >= 3)
            yield* consumer.cancel
          })
        )
        assert.deepStrictEqual(met, ["queued", "running", "completed"])
        yield* publish("t1", "again")
        const { body } = yield* eventually(ask, ({ status }) => status === 200)
        assert.strictEqual(body.count, 1)
      })
    )

    it.effect("read a status queue that is no stream one after the other, so that each has all of it", () =>
      Effect.gen(function* () {
        const topology = topologyOf({ status_use_streams: false })
        const { publish, url } = yield* scanned(topology, { source: "stream" }, { requireStream: false })
        yield* publish("t1", "queued", "running", "completed")
        const answers = yield* Effect.all([get(`${url}/history?task_id=t1`), get(`${url}/history?task_id=t1`)], {
          concurrency: 2
        })
        assert.sameMembers(
          answers.map(({ status }) => status),
          [200, 503]
        )
        assert.strictEqual(answers.find(({ status }) => status === 200)?.body.count, 3)
      })
    )

    it.effect("are refused with paths that are none", () =>
      Effect.gen(function* () {
        const refused = yield* Effect.flip(
          served({}, { eventsPath: "events/{task_id}", statusPath: "/status", historyPath: "/h/*" })
        )
        for (const field of ["eventsPath", "statusPath", "historyPath"]) assert.include(String(refused), field)
      })
    )
  })

suite("memory", RedisMemory.layer({ prefix: "svc-test-memory:" }), BrokerMemory.layer())
if (TemporaryPrefix.server !== null && RunningBroker.server !== null) {
  suite("redis and rabbitmq", TemporaryPrefix.layer, RunningBroker.layer())
}
