import { randomUUID } from "node:crypto"
import { assert, describe, layer as describeWith, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Layer, Logger, Metric, References, Schedule } from "effect"
import { TestClock } from "effect/testing"
import * as BrokerMemory from "../../../layers/BrokerMemory.ts"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import type { PublishedStatus } from "../../../src/messaging/envelope/StatusEvent.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import { ContractAliasConfig } from "../../../src/messaging/topology/Aliases.ts"
import type { Topology } from "../../../src/messaging/topology/Topology.ts"
import { Broker, type Properties } from "../../../src/services/Broker.ts"
import { Redis, RedisError } from "../../../src/services/Redis.ts"
import * as StatusHub from "../../../src/status/hub/StatusHub.ts"
import * as RedisStatusStore from "../../../src/status/store/RedisStatusStore.ts"
import { StatusStore } from "../../../src/status/store/StatusStore.ts"
import { eventually } from "../../Eventually.ts"
import { observer } from "../../messaging/AtWork.ts"
import { shared } from "../../messaging/SampleTopologies.ts"
import * as RunningBroker from "../../RunningBroker.ts"
import * as TemporaryPrefix from "../../TemporaryPrefix.ts"
import { event } from "../Events.ts"

const memory = Layer.merge(BrokerMemory.layer(), RedisMemory.layer({ prefix: "svc-test-memory:" }))

/** A topology of the test's own, gone from the broker with the scope, and a client for it. */
const desk = Effect.fnUntraced(function* (streams: boolean, more: Parameters<typeof shared>[0] = {}) {
  const prefix = `svc-test-${randomUUID()}`
  const topology = shared({
    tasks_exchange: `${prefix}.tasks`,
    tasks_queue: `${prefix}.tasks.queue`,
    status_exchange: `${prefix}.status`,
    status_queue: `${prefix}.status.queue`,
    status_use_streams: streams,
    ...more
  })
  yield* removed(topology)
  const client = yield* BrokerClient.make({ topology })
  yield* client.initialize
  const store = yield* RedisStatusStore.make({ prefix, history_maxlen: 1_000 })
  return { client, prefix, store, topology, ...(yield* tools(client, store, prefix)) }
})

const removed = (topology: Topology) =>
  Effect.flatMap(Broker, (broker) =>
    Effect.addFinalizer(() =>
      Effect.ignore(
        broker.remove({
          queues: topology.queues.map(({ name }) => name),
          exchanges: topology.exchanges.map(({ name }) => name)
        })
      )
    )
  )

const tools = Effect.fnUntraced(function* (
  client: BrokerClient["Service"],
  store: StatusStore["Service"],
  prefix: string
) {
  const broker = yield* Broker
  const context = Context.make(BrokerClient, client).pipe(
    Context.add(StatusStore, store),
    Context.add(Broker, broker),
    Context.add(Redis, yield* Redis)
  )
  const { queue } = client.topology.status
  return {
    /** A hub at work; the answer stops it. */
    hub: Effect.fnUntraced(function* (
      options: StatusHub.Options = {},
      over: StatusStore["Service"] = store,
      through: Broker["Service"] = broker
    ) {
      const hub = yield* Effect.provide(
        StatusHub.make({ prefix, idleRetrySeconds: 0.1, ...options }),
        context.pipe(Context.add(StatusStore, over), Context.add(Broker, through))
      )
      yield* Effect.forkScoped(hub.run)
      yield* Effect.addFinalizer(() => hub.stop)
      return hub.stop
    }),
    /** The same, and how far it is. */
    progress: Effect.fnUntraced(function* (over: StatusStore["Service"]) {
      const hub = yield* Effect.provide(
        StatusHub.make({ prefix, idleRetrySeconds: 0.1 }),
        Context.add(context, StatusStore, over)
      )
      yield* Effect.forkScoped(hub.run)
      yield* Effect.addFinalizer(() => hub.stop)
      return hub
    }),
    /** Bytes to the status queue, as any client may send them. */
    drop: (body: string | Uint8Array, properties: Properties = {}) =>
      broker.publish({
        purpose: "statuses",
        exchange: "",
        routingKey: queue,
        content: Buffer.from(body),
        properties
      }),
    say: (task: string, ids: ReadonlyArray<string>) =>
      Effect.forEach(ids, (id) => client.publishStatus(event(task, id)), { discard: true }),
    ids: (task: string) => Effect.map(store.history(task), ({ events }) => events.map(({ eventId }) => eventId)),
    until: (task: string, count: number) => eventually(store.history(task), ({ newest }) => newest >= count)
  }
})

const numbered = (count: number, from = 0) => Array.from({ length: count }, (_, n) => `e${from + n}`)

const suite = <E>(name: string, world: Layer.Layer<Broker | Redis, E>) =>
  describeWith(world, { excludeTestServices: true })(`StatusHub: ${name}`, (it) => {
    for (const streams of [true, false]) {
      const plane = streams ? "stream" : "queue"

      it.effect(`${plane}: stores what was said before and after it came, in order, once`, () =>
        Effect.gen(function* () {
          const { hub, ids, say, until } = yield* desk(streams)
          yield* say("t", numbered(20))
          yield* hub()
          yield* say("t", numbered(20, 20))
          yield* say("t", numbered(5))
          yield* say("u", ["only"])
          yield* until("u", 1)
          yield* until("t", 40)
          assert.deepStrictEqual(yield* ids("t"), numbered(40))
        }).pipe(Effect.scoped)
      )

      it.effect(`${plane}: goes on where the one before it stopped`, () =>
        Effect.gen(function* () {
          const { hub, ids, say, store, until } = yield* desk(streams)
          const stop = yield* hub()
          yield* say("t", numbered(10))
          yield* until("t", 10)
          yield* stop
          yield* say("t", numbered(10, 10))
          const seen = observer()
          const given: Array<string> = []
          const counting = StatusStore.of({
            ...store,
            store: (event) =>
              Effect.andThen(
                Effect.sync(() => given.push(event.event_id)),
                store.store(event)
              )
          })
          yield* hub({ observationSink: seen.sink }, counting)
          yield* until("t", 20)
          assert.deepStrictEqual(yield* ids("t"), numbered(20))
          assert.deepStrictEqual(given, numbered(10, 10))
          assert.strictEqual(seen.of("StatusHubStoredEvent").length, 10)
          assert.include(seen.types(), "StatusHubStarted")
        }).pipe(Effect.scoped)
      )

      it.effect(`${plane}: leaves out what is no event, and says so`, () =>
        Effect.gen(function* () {
          const { client, drop, hub, ids, store, until } = yield* desk(streams, { status_max_event_bytes: 200_000 })
          const seen = observer()
          yield* hub({
            observationSink: seen.sink,
            sanitizeMetaKeys: ["token"],
            aliasConfig: new ContractAliasConfig({ field_aliases: { status: "state" } })
          })
          yield* drop("{")
          yield* drop(new Uint8Array([0xff, 0xfe]))
          yield* drop("[1]")
          yield* drop(JSON.stringify({ task_id: " ", status: "x" }))
          yield* drop(JSON.stringify({ task_id: "t" }))
          yield* drop(JSON.stringify({ task_id: "t", status: "x", message: "x".repeat(200_000) }))
          // read, and never to be written
          yield* drop(`{"task_id":"t","status":"x","meta":{"deep":${"[".repeat(90_000)}${"]".repeat(90_000)}}}`)
          yield* drop("{", { headers: { task_id: "named" } })
          const bare = JSON.stringify({ documentId: "t", state: "processing", meta: { token: "secret", kept: 1 } })
          yield* drop(bare)
          yield* drop(bare)
          yield* client.publishStatus(event("t", "last"))
          yield* until("t", 2)
          assert.deepStrictEqual(
            seen.of("StatusHubMalformedMessage").map((fields) => Object.values(fields)),
            [
              [null, "malformed_json"],
              [null, "malformed_json"],
              [null, "payload_not_mapping"],
              [null, "invalid_envelope"],
              ["t", "invalid_envelope"],
              [null, "oversized"],
              ["t", "invalid_envelope"],
              ["named", "malformed_json"]
            ]
          )
          const { events } = yield* store.history("t")
          assert.deepInclude(JSON.parse(events[0]?.json ?? ""), {
            task_id: "t",
            status: "processing",
            meta: { kept: 1 },
            correlation_id: "t"
          })
          assert.strictEqual((yield* ids("t"))[1], "last")
        }).pipe(Effect.scoped)
      )

      it.effect(
        `${plane}: stores events of other programs with defaults for null, and without members of a wrong type`,
        () =>
          Effect.gen(function* () {
            const { drop, hub, store, until } = yield* desk(streams)
            const seen = observer()
            yield* hub({ observationSink: seen.sink })
            const required = { task_id: "t", status: "processing" }
            const nulls = {
              message: null,
              result: null,
              meta: null,
              timestamp: null,
              spec_version: null,
              event_id: null
            }
            const wrong = { correlation_id: 7, message: 7, result: [] }
            yield* drop(JSON.stringify({ ...required, ...nulls }))
            yield* drop(JSON.stringify({ ...required, ...nulls }))
            yield* drop(JSON.stringify({ ...required, ...wrong, timestamp: "2026-11-20T12:00:00Z", extra: 1 }))
            yield* drop(JSON.stringify({ ...required, ...wrong, timestamp: "2026-11-20T12:00:00Z", extra: 1 }))
            // different ones, whatever they are read without
            yield* drop(JSON.stringify({ ...required, timestamp: "20.11.2026" }))
            yield* drop(JSON.stringify({ ...required, timestamp: "21.11.2026" }))
            yield* drop(JSON.stringify({ ...required, event_id: 1 }))
            yield* drop(JSON.stringify({ ...required, event_id: 2 }))
            yield* drop(
              JSON.stringify({ ...required, status: "completed", meta: "none", service: {}, event_id: "last" })
            )
            yield* until("t", 7)
            const events = (yield* store.history("t")).events.map(({ json }) => JSON.parse(json))
            assert.lengthOf(events, 7)
            for (const event of events) assert.deepInclude(event, { task_id: "t", correlation_id: "t", meta: {} })
            assert.strictEqual(events[0].spec_version, "1.0")
            assert.match(events[0].timestamp, /Z$/)
            assert.deepInclude(events[1], { timestamp: "2026-11-20T12:00:00Z", extra: 1 })
            assert.notProperty(events[1], "message")
            assert.strictEqual(events.at(-1)?.event_id, "last")
            const leftOut = seen.of("StatusHubMembersLeftOut")
            assert.deepStrictEqual(
              leftOut.map((one) => ("members" in one ? [one.task_id, one.members] : [])),
              [
                ["t", "message,result,correlation_id"],
                ["t", "message,result,correlation_id"],
                ["t", "timestamp"],
                ["t", "timestamp"],
                ["t", "event_id"],
                ["t", "event_id"],
                ["t", "meta,service"]
              ]
            )
            assert.deepStrictEqual(seen.of("StatusHubMalformedMessage"), [])
          }).pipe(Effect.scoped)
      )

      it.effect(`${plane}: tells when it has begun, and when it has caught up`, () =>
        Effect.gen(function* () {
          const { ids, progress, say, store } = yield* desk(streams)
          yield* say("t", numbered(500))
          const slow = { ...store, store: (event: PublishedStatus) => Effect.delay(store.store(event), "2 millis") }
          const first = yield* progress(slow)
          yield* first.started
          yield* first.caughtUp
          assert.deepStrictEqual(yield* ids("t"), numbered(500))
          yield* say("t", numbered(100, 500))
          yield* first.caughtUp
          assert.deepStrictEqual(yield* ids("t"), numbered(600))
          yield* first.stop
          // nothing was said since
          const second = yield* progress(slow)
          yield* second.caughtUp
          yield* say("u", ["e1"])
          yield* second.caughtUp
          assert.deepStrictEqual(yield* ids("u"), ["e1"])
        }).pipe(Effect.scoped)
      )

      it.effect(`${plane}: tells how old the oldest event is that it has not stored`, () =>
        Effect.gen(function* () {
          const { drop, progress, say, store } = yield* desk(streams)
          const mayStore = Deferred.makeUnsafe<void>()
          const late = (status: PublishedStatus) => Effect.andThen(Deferred.await(mayStore), store.store(status))
          const { caughtUp, lagMs, started } = yield* progress({ ...store, store: late })
          assert.isUndefined(yield* lagMs)
          yield* started
          assert.strictEqual(yield* lagMs, 0)
          const published = new Date(Date.now() - 240_000).toISOString()
          yield* drop(JSON.stringify({ task_id: "t", status: "read", timestamp: published }))
          yield* say("u", numbered(3))
          const lag = yield* eventually(lagMs, (lag = 0) => lag > 0)
          assert.isAtLeast(lag ?? 0, 240_000)
          Deferred.doneUnsafe(mayStore, Exit.void)
          yield* caughtUp
          assert.strictEqual(yield* lagMs, 0)
        }).pipe(Effect.scoped)
      )

      it.effect(`${plane}: stores the largest status that the client publishes`, () =>
        Effect.gen(function* () {
          const maxBytes = 1_500_000
          const { client, hub, store, until } = yield* desk(streams, { status_max_event_bytes: maxBytes })
          yield* hub()
          const overhead = Buffer.byteLength(JSON.stringify({ ...event("t", "e"), result: { text: "" } }))
          const done = (length: number) => ({
            ...event("t", "e", { status: "completed" }),
            result: { text: "x".repeat(length) }
          })
          const largest = maxBytes - overhead - "completed".length + "processing".length
          const { field, message, reason } = yield* Effect.flip(client.publishStatus(done(largest + 1))).pipe(
            Effect.flatMap((error) => (error._tag === "InvalidPublish" ? Effect.succeed(error) : Effect.die(error)))
          )
          assert.deepStrictEqual([reason, field], ["status_too_large", "status_max_event_bytes"])
          assert.include(message, `${maxBytes + 1} bytes`)
          yield* client.publishStatus(done(largest))
          yield* until("t", 1)
          assert.strictEqual((yield* store.latest("t"))?.status, "completed")
        }).pipe(Effect.scoped)
      )

      it.effect(`${plane}: stores the numbers that JavaScript does not have, and tells events apart by them`, () =>
        Effect.gen(function* () {
          const { drop, hub, store, until } = yield* desk(streams)
          yield* hub()
          const result = (wide: string) => `"result":{"order":12345678901234567890,"wide":${wide},"big":1e400}`
          const wides = ["9007199254740992", "9007199254740993"]
          for (const wide of [...wides, ...wides]) {
            yield* drop(`{"documentId":9007199254740993,"status":"done",${result(wide)}}`)
          }
          yield* drop('{"task_id":"9007199254740993","status":"last"}')
          yield* until("9007199254740993", 3)
          const { events } = yield* store.history("9007199254740993")
          assert.lengthOf(events, 3)
          for (const [n, wide] of wides.entries()) assert.include(events[n]?.json, result(wide))
        }).pipe(Effect.scoped)
      )

      it.effect(`${plane}: holds what the store does not take, and stores it in order when it does`, () =>
        Effect.gen(function* () {
          const { hub, ids, say, store, until } = yield* desk(streams)
          let isDown = true
          const refusal = new RedisError({ operation: "script", retryable: true, cause: new Error("gone") })
          let tries = 0
          const moody = StatusStore.of({
            ...store,
            store: (event) =>
              Effect.suspend(() => {
                tries++
                // now and then it does it, and does not say so
                if (isDown)
                  return tries % 7 === 0
                    ? Effect.andThen(store.store(event), Effect.fail(refusal))
                    : Effect.fail(refusal)
                return store.store(event)
              })
          })
          const seen = observer()
          yield* hub({ observationSink: seen.sink, prefetch: 20 }, moody)
          yield* say("t", numbered(30))
          yield* say("u", numbered(3))
          yield* eventually(
            Effect.sync(() => tries),
            (tries) => tries > 4
          )
          isDown = false
          yield* until("u", 3)
          yield* until("t", 30)
          assert.deepStrictEqual(yield* ids("t"), numbered(30))
          assert.deepInclude(seen.of("StatusHubStoreWriteFailed")[0], {
            exception_type: "RedisError",
            exception_message: "gone"
          })
        }).pipe(Effect.scoped)
      )

      it.effect(`${plane}: leaves out what Redis refuses for good, and goes on with the rest`, () =>
        Effect.gen(function* () {
          const { drop, hub, ids, prefix, say, until } = yield* desk(streams)
          const redis = yield* Redis
          const seen = observer()
          const lines: Array<string> = []
          const logger = Logger.make(({ message }) => void lines.push(String(message)))
          for (const kind of ["history", "ids"]) yield* redis.command("SET", redis.key(`${prefix}:${kind}:{mine}`), "x")
          yield* hub({ observationSink: seen.sink }).pipe(Effect.provide(Logger.layer([logger])))
          yield* Effect.forEach(numbered(20), () => drop("{"), { discard: true })
          yield* say("mine", numbered(50))
          yield* say("t", numbered(3))
          yield* until("t", 3)
          yield* eventually(
            Effect.sync(() => seen.of("StatusHubStoreWriteFailed")),
            (failed) => failed.length === 50
          )
          assert.match(JSON.stringify(seen.of("StatusHubStoreWriteFailed")[0]), /WRONGTYPE/)
          assert.lengthOf(seen.of("StatusHubMalformedMessage"), 20)
          const logged = (what: string) => lines.filter((line) => line.includes(what)).length
          assert.deepStrictEqual([logged("is not stored and will be missing"), logged("is not a status event")], [1, 1])
          yield* redis.command("DEL", redis.key(`${prefix}:history:{mine}`), redis.key(`${prefix}:ids:{mine}`))
          yield* say("mine", ["later"])
          yield* until("mine", 1)
          assert.deepStrictEqual(yield* ids("mine"), ["later"])
        }).pipe(Effect.scoped)
      )

      it.effect(`${plane}: is one of several, and nothing is stored twice`, () =>
        Effect.gen(function* () {
          const { hub, ids, say, until } = yield* desk(streams)
          yield* Effect.all([hub({ prefetch: 7 }), hub({ prefetch: 100 }), hub({ prefetch: 1 })])
          const tasks = Array.from({ length: 10 }, (_, n) => `t${n}`)
          yield* Effect.forEach(tasks, (task) => say(task, numbered(30)), { concurrency: 10 })
          for (const task of tasks) {
            yield* until(task, 30)
            const stored = yield* ids(task)
            // hubs that share a queue hold events of the same task, and either may be the first
            assert.deepStrictEqual(
              streams ? stored : stored.toSorted(),
              streams ? numbered(30) : numbered(30).toSorted()
            )
          }
        }).pipe(Effect.scoped)
      )
    }

    it.effect("stream: begins where it is told to, once", () =>
      Effect.gen(function* () {
        const { hub, ids, say, until } = yield* desk(true, { status_stream_initial_offset: 7 })
        yield* say("t", numbered(10))
        const stop = yield* hub()
        yield* until("t", 3)
        assert.deepStrictEqual(yield* ids("t"), ["e7", "e8", "e9"])
        yield* stop
        yield* say("t", ["more"])
        yield* hub({ consumeArguments: { "x-stream-offset": 2 } })
        yield* until("t", 4)
        assert.deepStrictEqual(yield* ids("t"), ["e7", "e8", "e9", "more"])
      }).pipe(Effect.scoped)
    )

    it.effect("stream: reads again what Redis has lost, also while nothing is said", () =>
      Effect.gen(function* () {
        const { hub, ids, prefix, say, topology, until } = yield* desk(true)
        const { command, key } = yield* Redis
        yield* hub()
        yield* say("t", numbered(10))
        yield* until("t", 10)
        const mark = key(`${prefix}:hub:{${topology.status.queue}}`)
        yield* eventually(command("GET", mark), (found) => String(found).startsWith("9 "))
        yield* command("DEL", mark, ...["ids", "history"].map((what) => key(`${prefix}:${what}:{t}`)))
        yield* until("t", 10)
        assert.deepStrictEqual(yield* ids("t"), numbered(10))
        yield* say("t", ["more"])
        yield* until("t", 11)
      }).pipe(Effect.scoped)
    )

    for (const [then, replace] of [
      ["holds less", 3],
      ["holds more", 15],
      ["is empty", 0]
    ] as const) {
      it.effect(`stream: begins anew on one that was declared again, and ${then}`, () =>
        Effect.gen(function* () {
          const { hub, ids, say, topology, until } = yield* desk(true)
          const stop = yield* hub()
          yield* say("t", numbered(10))
          yield* until("t", 10)
          yield* stop
          const broker = yield* Broker
          yield* broker.remove({ queues: [topology.status.queue] })
          yield* broker.declare(topology)
          yield* say("u", numbered(replace))
          yield* hub()
          // it may be looking at an empty one by now
          yield* Effect.sleep("300 millis")
          yield* say("u", ["more"])
          yield* until("u", replace + 1)
          assert.deepStrictEqual(yield* ids("u"), [...numbered(replace), "more"])
        }).pipe(Effect.scoped)
      )
    }

    for (const [when, emptyFor] of [
      ["filled at once", "0 seconds"],
      ["empty for a while", "1 second"]
    ] as const) {
      it.effect(`stream: stores all of one that was declared again under it, and was ${when}`, () =>
        Effect.gen(function* () {
          const { hub, ids, say, topology, until } = yield* desk(true, { status_stream_initial_offset: 50 })
          const broker = yield* Broker
          // where nothing is known, both would begin too far behind
          yield* Effect.all([hub(), hub()])
          yield* say("u", numbered(50))
          yield* say("t", ["old"])
          yield* until("t", 1)
          yield* broker.remove({ queues: [topology.status.queue] })
          // the hubs declare it as well, and RabbitMQ may hang up on who comes while it deletes
          yield* Effect.retry(broker.declare(topology), Schedule.spaced("100 millis"))
          yield* Effect.sleep(emptyFor)
          yield* Effect.forEach(numbered(60), (id) => Effect.retry(say("t", [id]), Schedule.spaced("100 millis")))
          yield* until("t", 61)
          assert.deepStrictEqual(yield* ids("t"), ["old", ...numbered(60)])
        }).pipe(Effect.scoped)
      )
    }
  })

suite("memory", memory)

describe.skipIf(RunningBroker.server === null || TemporaryPrefix.server === null)("on servers", () => {
  suite("RabbitMQ and Redis", Layer.merge(RunningBroker.layer(), TemporaryPrefix.layer))
})

describe("StatusHub", () => {
  it.live("counts what becomes of messages, and how late events are stored", () =>
    Effect.gen(function* () {
      const { drop, hub, say, store, until } = yield* desk(true)
      let failures = 1
      const gone = new RedisError({ operation: "script", retryable: true, cause: new Error("gone") })
      yield* hub(
        {},
        StatusStore.of({
          ...store,
          store: (event) => Effect.suspend(() => (failures-- > 0 ? Effect.fail(gone) : store.store(event)))
        })
      )
      yield* drop("{")
      yield* say("t", ["a", "a", "b"])
      yield* until("t", 2)
      const counted = yield* eventually(
        Effect.map(Metric.snapshot, (all) =>
          all
            .filter(({ id }) => id.startsWith("svc_status_hub_"))
            .map(({ attributes, id, state }) => [
              id,
              attributes?.["outcome"],
              "count" in state ? state.count : undefined
            ])
        ),
        (counted) => counted.some(([, outcome, count]) => outcome === "stored" && count === 2)
      )
      assert.sameDeepMembers(counted, [
        ["svc_status_hub_events_total", "stored", 2],
        ["svc_status_hub_events_total", "duplicate", 1],
        ["svc_status_hub_events_total", "malformed", 1],
        ["svc_status_hub_store_failures_total", undefined, 1],
        ["svc_status_hub_lag_seconds", undefined, 2],
        ["svc_status_hub_lag_ms", undefined, 2]
      ])
    }).pipe(Effect.scoped, Effect.provide(memory), Effect.provideService(Metric.MetricRegistry, new Map()))
  )

  it.effect("takes a stream that is silent for no other one", () =>
    Effect.gen(function* () {
      // time passes as fast as it can
      yield* Effect.forkScoped(Effect.forever(TestClock.adjust("5 millis")))
      const { hub, ids, prefix, say, store, topology, until } = yield* desk(true)
      const redis = yield* Redis
      const broker = yield* Broker
      yield* hub()
      yield* say("t", numbered(150))
      yield* until("t", 150)
      const bookmark = redis.command("GET", redis.key(`${prefix}:hub:{${topology.status.queue}}`))
      yield* eventually(bookmark, (found) => String(found).startsWith("149 "))
      const held: Array<() => void> = []
      const slow = Broker.of({
        ...broker,
        channel: (options) =>
          Effect.map(broker.channel(options), (channel) => ({
            ...channel,
            consume: (options) =>
              channel.consume({ ...options, onDelivery: (delivery) => held.push(() => options.onDelivery(delivery)) })
          }))
      })
      const seen = observer()
      const again: Array<string> = []
      const noted = StatusStore.of({
        ...store,
        store: (event) =>
          Effect.andThen(
            Effect.sync(() => again.push(event.event_id)),
            store.store(event)
          )
      })
      yield* hub({ observationSink: seen.sink }, noted, slow)
      yield* Effect.sleep("20 seconds")
      assert.deepStrictEqual(seen.types(), [])
      yield* eventually(
        Effect.sync(() => seen.of("StatusHubLoopError")),
        (errors) => errors.length > 0
      )
      assert.match(JSON.stringify(seen.of("StatusHubLoopError")[0]), /delivered nothing in time/)
      assert.match(String(yield* bookmark), /^149 /)
      yield* Effect.sleep("20 seconds")
      for (const deliver of held) deliver()
      yield* say("t", ["more"])
      yield* until("t", 151)
      yield* eventually(
        Effect.sync(() => again),
        ({ length }) => length > 0
      )
      assert.deepStrictEqual(again, ["more"])
      assert.deepStrictEqual(yield* ids("t"), [...numbered(150), "more"])
    }).pipe(Effect.scoped, Effect.provide(memory), Effect.provideService(References.MinimumLogLevel, "None"))
  )

  it.effect("refuses settings that cannot be meant, by name", () =>
    Effect.gen(function* () {
      const make = Effect.fnUntraced(function* (options: StatusHub.Options, streams = true) {
        const topology = shared({ status_use_streams: streams })
        const client = yield* BrokerClient.make({ topology })
        const store = yield* RedisStatusStore.make()
        return yield* Effect.flip(
          StatusHub.make(options).pipe(
            Effect.provideService(BrokerClient, client),
            Effect.provideService(StatusStore, store)
          )
        )
      })
      const { mistakes } = yield* make({
        prefetch: 0,
        prefix: "{",
        idleRetrySeconds: 0,
        consumeArguments: { "x-stream-offset": "bogus" }
      })
      assert.deepStrictEqual(
        mistakes.map(({ field }) => field),
        ["prefetch", "prefix", "idleRetrySeconds", "consumeArguments.x-stream-offset"]
      )
      const offset = { consumeArguments: { "x-stream-offset": "first" } }
      assert.match((yield* make(offset, false)).message, /applies only to streams/)
    }).pipe(Effect.provide(memory))
  )
})
