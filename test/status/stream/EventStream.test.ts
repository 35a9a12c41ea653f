import { randomUUID } from "node:crypto"
import { assert, describe, layer as describeWith, it } from "@effect/vitest"
import { Effect, Layer, Metric, Redacted } from "effect"
import fc from "fast-check"
import * as RedisIoredis from "../../../layers/RedisIoredis.ts"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import type { Observation } from "../../../src/messaging/observe/Observation.ts"
import { ContractAliasConfig } from "../../../src/messaging/topology/Aliases.ts"
import { Redis } from "../../../src/services/Redis.ts"
import { defaultPrefix } from "../../../src/status/store/DefaultPrefix.ts"
import * as RedisStatusStore from "../../../src/status/store/RedisStatusStore.ts"
import { StatusStore } from "../../../src/status/store/StatusStore.ts"
import { TerminalStatusSet } from "../../../src/status/store/TerminalStatusSet.ts"
import { eventually } from "../../Eventually.ts"
import { logged } from "../../messaging/Logged.ts"
import * as TcpProxy from "../../TcpProxy.ts"
import * as TemporaryPrefix from "../../TemporaryPrefix.ts"
import { connect, type EventClient } from "../EventClient.ts"
import { event } from "../Events.ts"
import * as FaultyStore from "../FaultyStore.ts"
import { served } from "../Served.ts"

const kept = 20

const task = () => `task-${randomUUID()}`

type Stored = readonly [id: string, status: string, more?: Parameters<typeof event>[2]]

const store = (id: string, events: ReadonlyArray<Stored>) =>
  Effect.flatMap(StatusStore, (store) =>
    Effect.forEach(events, ([one, status, more]) => store.store(event(id, one, { status, ...more })), { discard: true })
  )

const frame = (id: string, one: string, status: string) =>
  `id: ${one}\nevent: status\ndata: ${JSON.stringify(event(id, one, { status }))}\n\n`

const ready = "event: ready\ndata: {}\n\n"

const suite = <E>(name: string, redis: Layer.Layer<Redis, E>) =>
  describeWith(
    FaultyStore.layer.pipe(Layer.provide(RedisStatusStore.layer({ history_maxlen: kept })), Layer.provide(redis)),
    { excludeTestServices: true }
  )(`event streams: ${name}`, (it) => {
    it.effect("are these bytes: ready, the history, what happens, and the end of the task", () =>
      Effect.gen(function* () {
        const id = task()
        const { url } = yield* served()
        yield* store(id, [["e1", "queued"]])
        const client = yield* connect(`${url}/events/${id}`)
        yield* client.until(({ ids }) => ids.length === 1)
        yield* store(id, [
          ["e2", "processing"],
          ["e3", "Completed"]
        ])
        yield* client.until(({ ended }) => ended)
        assert.strictEqual(
          client.text,
          ready + frame(id, "e1", "queued") + frame(id, "e2", "processing") + frame(id, "e3", "Completed")
        )
        assert.strictEqual(client.status, 200)
        assert.deepInclude(client.headers, {
          "content-type": "text/event-stream; charset=utf-8",
          "cache-control": "no-cache, no-store, must-revalidate",
          connection: "keep-alive",
          "x-accel-buffering": "no"
        })
      })
    )

    it.effect("are open for a task that nobody knows yet", () =>
      Effect.gen(function* () {
        const id = task()
        const { url } = yield* served()
        const client = yield* connect(`${url}/events/${id}`)
        yield* client.until(({ text }) => text === ready)
        yield* store(id, [["e1", "failed"]])
        yield* client.until(({ ended }) => ended)
        assert.deepStrictEqual(client.ids, ["e1"])
      })
    )

    it.effect("go on after the last event that the client knows, and end at once behind the end", () =>
      Effect.gen(function* () {
        const id = task()
        const { url } = yield* served()
        yield* store(id, [
          ["e1", "queued"],
          ["é2", "processing"],
          ["e3", "failed"]
        ])
        const from = Effect.fnUntraced(function* (last: string, known?: string) {
          const query = known === undefined ? "" : `?last_event_id=${encodeURIComponent(known)}`
          const client = yield* connect(`${url}/events/${id}${query}`, {
            ...(last !== "" && { "last-event-id": Buffer.from(last).toString("latin1") })
          })
          yield* client.until(({ ended }) => ended)
          return client.text
        })
        assert.strictEqual(yield* from("e1"), ready + frame(id, "é2", "processing") + frame(id, "e3", "failed"))
        assert.strictEqual(yield* from("é2"), ready + frame(id, "e3", "failed"))
        assert.strictEqual(yield* from("e3"), ready)
        assert.strictEqual(yield* from("", "é2"), ready + frame(id, "e3", "failed"))
        // a browser that connects again knows more than the address says
        assert.strictEqual(yield* from("e3", "e1"), ready)
      })
    )

    it.effect("go on when a task that failed is taken up again", () =>
      Effect.gen(function* () {
        const id = task()
        const { url } = yield* served()
        yield* store(id, [
          ["e1", "failed"],
          ["e2", "processing"]
        ])
        const client = yield* connect(`${url}/events/${id}`)
        yield* client.until(({ ids }) => ids.length === 2)
        const later = yield* connect(`${url}/events/${id}`, { "last-event-id": "e1" })
        yield* store(id, [["e3", "completed"]])
        yield* client.until(({ ended }) => ended)
        yield* later.until(({ ended }) => ended)
        assert.deepStrictEqual(client.ids, ["e1", "e2", "e3"])
        assert.deepStrictEqual(later.ids, ["e2", "e3"])
      })
    )

    it.effect("end behind stragglers, and behind what aggregation says of a finished child", () =>
      Effect.gen(function* () {
        const { url } = yield* served()
        const minutes = (minute: number) => ({ timestamp: `2026-11-20T12:0${minute}:00Z` })
        const aggregation = { meta: { aggregation_role: "aggregation" } }
        const histories: ReadonlyArray<ReadonlyArray<Stored>> = [
          [
            ["e1", "processing", minutes(0)],
            ["e2", "aggregating", { ...minutes(1), ...aggregation }],
            ["e3", "completed", minutes(2)],
            ["e4", "retrying", { ...minutes(3), ...aggregation }]
          ],
          [
            ["e1", "processing", minutes(0)],
            ["e2", "completed", minutes(2)],
            ["e3", "searching", minutes(1)]
          ]
        ]
        for (const history of histories) {
          const ids = history.map(([id]) => id)
          const live = task()
          const early = yield* connect(`${url}/events/${live}`)
          yield* early.until(({ text }) => text === ready)
          for (const one of history) yield* store(live, [one])
          yield* early.until(({ ended }) => ended)
          // it ends with the terminal status, or with what was stored by then
          assert.deepStrictEqual(early.ids, ids.slice(0, early.ids.length))
          for (const last of ids) {
            const late = yield* connect(`${url}/events/${live}`, { "last-event-id": last })
            yield* late.until(({ ended }) => ended)
            assert.deepStrictEqual(late.ids, ids.slice(ids.indexOf(last) + 1))
          }
          const replayed = yield* connect(`${url}/events/${live}`, { "last-event-id": "e1" })
          yield* replayed.until(({ ended }) => ended)
          yield* store(live, [["again", "processing", minutes(5)]])
          const open = yield* connect(`${url}/events/${live}`)
          yield* open.until(({ ids }) => ids.at(-1) === "again")
          yield* store(live, [["end", "completed", minutes(6)]])
          yield* open.until(({ ended }) => ended)
        }
      })
    )

    it.effect("begin again behind a reset where the last event is no longer kept, or is another task's", () =>
      Effect.gen(function* () {
        const [id, other] = [task(), task()]
        const { url } = yield* served()
        const many = Array.from({ length: kept + 5 }, (_, index) => [`e${index + 1}`, "processing"] as const)
        yield* store(id, [...many, ["end", "completed"]])
        yield* store(other, [["o1", "completed"]])
        const resets = Effect.fnUntraced(function* (path: string, last: string) {
          const client = yield* connect(`${url}/events/${path}`, { "last-event-id": last })
          yield* client.until(({ frames }) => frames.some(({ event }) => event === "reset"))
          const [, reset, ...rest] = client.frames
          return { ...JSON.parse(reset?.data ?? ""), event: reset?.event, rest: rest.length }
        })
        const trimmed = yield* resets(id, "e2")
        assert.deepInclude(trimmed, {
          event: "reset",
          reason: "history_trimmed",
          from_event_id: "e7",
          from_sequence: 7
        })
        assert.deepInclude(yield* resets(other, "e9"), { reason: "unknown_event", from_event_id: "o1" })
        assert.deepInclude(yield* resets(task(), "e9"), { reason: "history_gone", from_event_id: null, rest: 0 })
        const client = yield* connect(`${url}/events/${id}`, { "last-event-id": "e2" })
        yield* client.until(({ ended }) => ended)
        assert.strictEqual(client.ids.length, kept)
      })
    )

    it.effect("share one subscription for a task, and leave nothing behind", () =>
      Effect.gen(function* () {
        const id = task()
        const { url } = yield* served()
        const faults = yield* FaultyStore.Faults
        const clients = yield* Effect.forEach([1, 2, 3], () => connect(`${url}/events/${id}`))
        yield* Effect.forEach(clients, (client) => client.until(({ text }) => text === ready))
        yield* eventually(Effect.sync(faults.subscriptions), (open) => open === 1)
        yield* store(id, [["e1", "processing"]])
        yield* Effect.forEach(clients, (client) => client.until(({ ids }) => ids.length === 1))
        assert.strictEqual(faults.subscriptions(), 1)
        for (const client of clients) client.hangUp()
        yield* eventually(Effect.sync(faults.subscriptions), (open) => open === 0)
        yield* eventually(Metric.value(Metric.gauge("svc_status_open_streams")), ({ value }) => value === 0)
      })
    )

    it.effect("outlive the store: nothing is missed, nothing comes twice", () =>
      Effect.gen(function* () {
        const id = task()
        const { url } = yield* served()
        const faults = yield* FaultyStore.Faults
        yield* store(id, [["e1", "processing"]])
        const client = yield* connect(`${url}/events/${id}`)
        yield* client.until(({ ids }) => ids.length === 1)
        faults.down = true
        yield* faults.cut
        yield* eventually(Effect.sync(faults.subscriptions), (open) => open === 0)
        const early = yield* connect(`${url}/events/${id}`)
        yield* early.until(({ text }) => text === ready)
        yield* store(id, [
          ["e2", "failed"],
          ["e3", "processing"]
        ])
        faults.down = false
        yield* client.until(({ ids }) => ids.length === 3)
        yield* store(id, [["e4", "completed"]])
        for (const each of [client, early]) {
          yield* each.until(({ ended }) => ended)
          assert.deepStrictEqual(each.ids, ["e1", "e2", "e3", "e4"])
        }
      })
    )

    it.effect("keep what a slow client does not take in the store alone", () =>
      Effect.gen(function* () {
        const id = task()
        const { url } = yield* served({ maxWaitingEvents: 4 })
        const client = yield* connect(`${url}/events/${id}`)
        yield* store(id, [["e1", "processing"]])
        yield* client.until(({ ids }) => ids.length === 1)
        client.pause()
        const long = "x".repeat(50_000)
        const statuses = yield* StatusStore
        const last = 400
        yield* Effect.forEach(
          Array.from({ length: last - 1 }, (_, index) => `e${index + 2}`),
          (one) =>
            // as long as it takes the server to fill whatever lies between it and the client
            Effect.andThen(statuses.store(event(id, one, { message: long })), Effect.sleep("1 millis")),
          { discard: true }
        )
        yield* statuses.store(event(id, "end", { status: "completed" }))
        client.resume()
        yield* client.until(({ ended }) => ended)
        const frames = client.frames.filter(({ event }) => event !== "ready")
        const reset = frames.findIndex(({ event }) => event === "reset")
        assert.isAbove(reset, 0)
        assert.strictEqual(JSON.parse(frames[reset]?.data ?? "").reason, "history_trimmed")
        const before = frames.slice(0, reset).map(({ id }) => id)
        assert.deepStrictEqual(
          before,
          Array.from(before, (_, index) => `e${index + 1}`)
        )
        const after = frames.slice(reset + 1).map(({ id }) => id)
        const from = JSON.parse(frames[reset]?.data ?? "").from_sequence
        assert.deepStrictEqual(after, [
          ...Array.from({ length: last + 1 - from }, (_, index) => `e${from + index}`),
          "end"
        ])
      })
    )

    it.effect("are a thousand at once", () =>
      Effect.gen(function* () {
        const { url } = yield* served()
        const id = task()
        const ids = Array.from({ length: 1_000 }, (_, index) => `${id}-${index % 500}`)
        const clients = yield* Effect.forEach(ids, (id) => connect(`${url}/events/${id}`), { concurrency: 100 })
        const all = (holds: (client: EventClient) => boolean) =>
          eventually(
            Effect.sync(() => clients.filter((client) => !holds(client)).length),
            (left) => left === 0,
            "25 seconds"
          )
        yield* all(({ text }) => text === ready)
        yield* Effect.forEach(
          new Set(ids),
          (id) =>
            store(id, [
              ["e1", "processing"],
              ["e2", "completed"]
            ]),
          {
            concurrency: 50
          }
        )
        yield* all(({ ended }) => ended)
        for (const { ids } of clients) assert.deepStrictEqual(ids, ["e1", "e2"])
      })
    )

    it.effect("together give a client its task's history, in order, once", () =>
      Effect.gen(function* () {
        const replicas = yield* Effect.all([served({ maxWaitingEvents: 3 }), served()])
        const faults = yield* FaultyStore.Faults
        for (const program of fc.sample(programs, { numRuns: 12, seed: 4 })) {
          yield* Effect.scoped(run(program, replicas, faults))
        }
      })
    )
  })

const programs = fc.array(
  fc.oneof(
    { arbitrary: fc.record({ act: fc.constant("store" as const), writer: fc.constantFrom("a", "b") }), weight: 8 },
    { arbitrary: fc.record({ act: fc.constant("storm" as const) }), weight: 1 },
    { arbitrary: fc.record({ act: fc.constantFrom("wait" as const, "fault" as const, "pause" as const) }), weight: 3 },
    { arbitrary: fc.record({ act: fc.constant("reconnect" as const), replica: fc.constantFrom(0, 1) }), weight: 2 }
  ),
  { minLength: 10, maxLength: 40 }
)
type Program = typeof programs extends fc.Arbitrary<infer P> ? P : never

/** Two writers, one client, and everything that can come between them. */
const run = Effect.fnUntraced(function* (
  program: Program,
  replicas: ReadonlyArray<{ readonly url: string }>,
  faults: FaultyStore.Faults["Service"]
) {
  const id = task()
  const written: Array<string> = []
  /** Since the last reset. */
  let received: Array<string | undefined> = []
  let client = yield* connect(`${replicas[0]?.url}/events/${id}`)
  let number = 0
  const write = (writer: string, status = "processing") =>
    Effect.suspend(() => {
      const one = `${writer}${++number}`
      return Effect.andThen(
        store(id, [[one, status]]),
        Effect.sync(() => written.push(one))
      )
    })
  const harvest = () => {
    for (const frame of client.frames) {
      if (frame.event === "reset") received = []
      if (frame.event === "status") received.push(frame.id)
    }
  }
  for (const step of program) {
    if (step.act === "store") yield* write(step.writer)
    // more than is kept
    if (step.act === "storm") yield* Effect.repeat(write("s"), { times: kept + 5 })
    if (step.act === "wait") yield* Effect.sleep("5 millis")
    if (step.act === "fault") yield* faults.cut
    if (step.act === "pause") client.pause()
    if (step.act === "reconnect") {
      client.hangUp()
      harvest()
      const last = received.at(-1)
      client = yield* connect(
        `${replicas[step.replica]?.url}/events/${id}`,
        last === undefined ? {} : { "last-event-id": last }
      )
    }
  }
  yield* Effect.all([write("a"), write("b")], { concurrency: 2 })
  yield* write("end", "completed")
  client.resume()
  yield* client.until(({ ended }) => ended)
  harvest()
  const first = written.length - received.length
  assert.deepStrictEqual(received, written.slice(first))
  // nothing is left out but what was gone when the client came, or came back
  if (first > 0) assert.isAtLeast(received.length, 1)
  if (written.length <= kept) assert.strictEqual(first, 0)
})

suite("memory", RedisMemory.layer({ prefix: "svc-test-memory:" }))
if (TemporaryPrefix.server !== null) suite("redis", TemporaryPrefix.layer)

describeWith(
  FaultyStore.layer.pipe(
    Layer.provide(RedisStatusStore.layer()),
    Layer.provideMerge(RedisMemory.layer({ prefix: "svc-test-memory:" }))
  ),
  { excludeTestServices: true }
)("an event stream", (it) => {
  describe("as its options say", () => {
    it.effect("is kept open by comments while nothing happens, or is not", () =>
      Effect.gen(function* () {
        const { url } = yield* served({ keepaliveIntervalSeconds: 0.1 })
        const silent = yield* served({ keepaliveIntervalSeconds: null })
        const still = yield* connect(`${silent.url}/events/${task()}`)
        const client = yield* connect(`${url}/events/${task()}`)
        yield* client.until(({ text }) => text.startsWith(`${ready}: keepalive\n\n: keepalive\n\n`))
        assert.strictEqual(still.text, ready)
      })
    )

    it.effect("names things as the contract does, and ends by the canonical status", () =>
      Effect.gen(function* () {
        const id = task()
        const aliasConfig = new ContractAliasConfig({
          field_aliases: { task_id: "attempt_id", status: "state" },
          http_aliases: { task_id: "attemptId" }
        })
        const { url } = yield* served(
          {
            aliasConfig,
            outputAdapter: (event) => ({ ...event, seen: true }),
            terminalStatuses: new TerminalStatusSet([" Done "])
          },
          { aliasConfig, eventsPath: "/v1/tasks/{attemptId}/events" }
        )
        yield* store(id, [
          ["e1", "completed"],
          ["e2", "DONE"]
        ])
        const client = yield* connect(`${url}/v1/tasks/${id}/events`)
        yield* client.until(({ ended }) => ended)
        const data = JSON.parse(client.frames.at(-1)?.data ?? "")
        assert.deepInclude(data, { attempt_id: id, state: "DONE", seen: true })
        assert.notProperty(data, "task_id")
      })
    )

    it.effect("is refused where its address has its share, also of tasks that do not exist, until one ends", () =>
      Effect.gen(function* () {
        const { url } = yield* served({ maxOpenStreams: 8 })
        const open = yield* Effect.forEach([1, 2], () => connect(`${url}/events/${task()}`))
        for (const stream of open) yield* stream.until(({ text }) => text === ready)
        const refused = yield* Effect.promise(() => fetch(`${url}/events/${task()}`))
        assert.deepStrictEqual([refused.status, refused.headers.get("retry-after")], [429, "5"])
        const body: unknown = yield* Effect.promise(() => refused.json())
        const detail = "This address has 2 event streams open, which is its limit. Close one of them first."
        assert.deepStrictEqual(body, { detail })
        open[0]?.hangUp()
        yield* eventually(
          Effect.flatMap(connect(`${url}/events/${task()}`), (next) =>
            Effect.andThen(
              next.until(({ status }) => status > 0),
              Effect.sync(() => next.status)
            )
          ),
          (status) => status === 200
        )
      })
    )

    it.effect("is refused, with a time to come again, when too many are open", () =>
      Effect.gen(function* () {
        const { url } = yield* served({ maxOpenStreams: 1 })
        const first = yield* connect(`${url}/events/${task()}`)
        yield* first.until(({ text }) => text === ready)
        const refused = yield* Effect.promise(() => fetch(`${url}/events/${task()}`))
        assert.deepStrictEqual([refused.status, refused.headers.get("retry-after")], [503, "5"])
        const body: unknown = yield* Effect.promise(() => refused.json())
        assert.deepStrictEqual(body, {
          detail: "This process has 1 event streams open, which is its limit. Try again later."
        })
        first.hangUp()
        yield* eventually(
          Effect.flatMap(connect(`${url}/events/${task()}`), (next) =>
            Effect.andThen(
              next.until(({ status }) => status > 0),
              Effect.sync(() => next.status)
            )
          ).pipe(Effect.scoped),
          (status) => status === 200
        )
      })
    )

    it.effect("is cut when its client takes nothing for too long", () =>
      Effect.gen(function* () {
        const id = task()
        const { url } = yield* served({ stalledSeconds: 0.2, keepaliveIntervalSeconds: 0.1 })
        const faults = yield* FaultyStore.Faults
        const client = yield* connect(`${url}/events/${id}`)
        yield* client.until(({ text }) => text.startsWith(ready))
        client.pause()
        const { store } = yield* StatusStore
        const long = "x".repeat(100_000)
        // Only the newest events are sent to a slow client, so that it takes many until the buffers of TCP are full.
        const storeOne = Effect.suspend(() => store(event(id, randomUUID(), { message: long })))
        const storeMore = Effect.repeat(storeOne, { times: kept })
        yield* eventually(Effect.map(storeMore, faults.subscriptions), (open) => open === 0)
      })
    )

    it.effect("is observed from its beginning to its end", () =>
      Effect.gen(function* () {
        const id = task()
        const seen: Array<Observation> = []
        const { url } = yield* served({ observationSink: (observation) => seen.push(observation) })
        yield* store(id, [
          ["e1", "queued"],
          ["e2", "processing"]
        ])
        const client = yield* connect(`${url}/events/${id}`, { "last-event-id": "e1" })
        yield* client.until(({ ids }) => ids.length === 1)
        yield* store(id, [["e3", "completed"]])
        yield* client.until(({ ended }) => ended)
        yield* eventually(
          Effect.sync(() => seen.length),
          (count) => count === 6
        )
        assert.deepStrictEqual(
          seen.map(({ component: _, timestamp: __, ...rest }) => rest),
          [
            { event_type: "SSEStreamStarted", task_id: id, resume_requested: true },
            { event_type: "SSEResumeRequested", task_id: id, last_event_id: "e1", history_match_found: true },
            { event_type: "SSEHistoryReplayed", task_id: id, replayed_count: 1 },
            { event_type: "SSELiveEventSent", task_id: id, event_id: "e2", status: "processing", source: "history" },
            { event_type: "SSELiveEventSent", task_id: id, event_id: "e3", status: "completed", source: "pubsub" },
            { event_type: "SSEStreamEnded", task_id: id, terminal_status: "completed", sent_count: 2 }
          ]
        )
      })
    )

    it.effect("observes what is published to it and is no event, and goes on", () =>
      Effect.gen(function* () {
        const id = task()
        const { command, key } = yield* Redis
        const seen: Array<Observation> = []
        const { url } = yield* served({ observationSink: (observation) => seen.push(observation) })
        yield* store(id, [["e1", "queued"]])
        const client = yield* connect(`${url}/events/${id}`)
        yield* client.until(({ ids }) => ids.length === 1)
        yield* command("PUBLISH", key(`${defaultPrefix}:live:{${id}}`), "not ours")
        yield* eventually(
          Effect.sync(() => seen.filter(({ event_type }) => event_type === "SSEMalformedPubsubPayload")),
          (malformed) => malformed.length === 1
        )
        yield* store(id, [["e2", "completed"]])
        yield* client.until(({ ended }) => ended)
        assert.deepStrictEqual(client.ids, ["e1", "e2"])
      })
    )

    it.effect("leaves out an event that its adapter cannot show, says so in the log, and goes on", () => {
      const log = logged()
      return Effect.gen(function* () {
        const id = task()
        const seen: Array<Observation> = []
        const { url } = yield* served({
          observationSink: (observation) => seen.push(observation),
          outputAdapter: (event) => {
            if (event["event_id"] === "e2") throw new Error("not this one")
            return event
          }
        })
        yield* store(id, [
          ["e1", "queued"],
          ["e2", "processing"],
          ["e3", "completed"]
        ])
        const client = yield* connect(`${url}/events/${id}`)
        yield* client.until(({ ended }) => ended)
        assert.deepStrictEqual(client.ids, ["e1", "e3"])
        assert.strictEqual(seen.filter(({ event_type }) => event_type === "SSEMalformedPubsubPayload").length, 1)
        assert.deepStrictEqual(log.lines(), [
          `The output adapter of event streams threw an error: an event of task ${id} was not sent Error: not this one`
        ])
      }).pipe(Effect.provide(log.layer))
    })

    it.effect("says farewell when its server goes, which then need not wait", () =>
      Effect.gen(function* () {
        const { close, url } = yield* served()
        const client = yield* connect(`${url}/events/${task()}`)
        yield* client.until(({ text }) => text === ready)
        yield* close
        yield* client.until(({ ended }) => ended)
        assert.match(client.text, /^event: ready\ndata: \{\}\n\nretry: \d+\n: the server is going down;.*\n\n$/)
      })
    )
  })

  describe("is not there", () => {
    it.effect("for what it cannot be", () =>
      Effect.gen(function* () {
        const { url } = yield* served()
        const ask = (path: string, init: RequestInit = {}) =>
          Effect.promise(async () => {
            const answer = await fetch(url + path, { ...init, signal: AbortSignal.timeout(5_000) })
            const text = await answer.text()
            return { status: answer.status, allow: answer.headers.get("allow"), text, headers: answer.headers }
          })
        const accept = yield* ask("/events/t", { headers: { accept: "application/json, text/html;q=0.5" } })
        assert.deepInclude(accept, { status: 406 })
        const id = yield* ask("/events/t", { headers: { "last-event-id": "x".repeat(513) } })
        assert.strictEqual(id.status, 422)
        assert.deepStrictEqual(JSON.parse(id.text), {
          detail: [{ loc: ["header", "Last-Event-ID"], msg: "must have at most 512 characters" }]
        })
        const known = yield* ask(`/events/t?last_event_id=${"x".repeat(513)}`)
        assert.deepStrictEqual(JSON.parse(known.text), {
          detail: [{ loc: ["query", "last_event_id"], msg: "must have at most 512 characters" }]
        })
        const long = yield* ask(`/events/${"x".repeat(256)}`)
        assert.deepStrictEqual(JSON.parse(long.text), {
          detail: [{ loc: ["path", "task_id"], msg: "must have at most 255 bytes" }]
        })
        assert.deepInclude(yield* ask("/events/%20"), { status: 422 })
        assert.deepInclude(yield* ask("/events/t", { method: "POST" }), { status: 405, allow: "GET, HEAD" })
        const head = yield* ask("/events/t", { method: "HEAD" })
        assert.deepStrictEqual([head.status, head.text], [200, ""])
        assert.strictEqual(head.headers.get("content-type"), "text/event-stream; charset=utf-8")
      })
    )
  })
})

describe.skipIf(TemporaryPrefix.server === null)("event streams, when the connection to Redis breaks", () => {
  it.live("go on when it is back, with what was stored meanwhile", () =>
    Effect.gen(function* () {
      const id = task()
      const prefix = yield* TemporaryPrefix.make
      const { hostname, port } = new URL(TemporaryPrefix.server ?? "")
      const proxy = yield* TcpProxy.make({ host: hostname, port: Number(port || 6379) })
      const stores = (url: Redacted.Redacted) =>
        RedisStatusStore.layer().pipe(Layer.provide(RedisIoredis.layer({ url, prefix })))
      const direct = yield* Layer.build(stores(TemporaryPrefix.url))
      const proxied = yield* Layer.build(stores(Redacted.make(`redis://127.0.0.1:${proxy.port}`)))
      const write = (...events: Parameters<typeof store>[1]) => Effect.provide(store(id, events), direct)

      const { url } = yield* served().pipe(Effect.provide(proxied))
      const client = yield* connect(`${url}/events/${id}`)
      yield* write(["e1", "queued"])
      yield* client.until(({ ids }) => ids.length === 1)
      yield* proxy.cut
      yield* write(["e2", "failed"], ["e3", "processing"])
      yield* proxy.restore
      yield* client.until(({ ids }) => ids.length === 3)
      yield* write(["e4", "completed"])
      yield* client.until(({ ended }) => ended)
      assert.deepStrictEqual(client.ids, ["e1", "e2", "e3", "e4"])
    })
  )
})
