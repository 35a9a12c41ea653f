import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Broker } from "../../../src/services/Broker.ts"
import { Redis } from "../../../src/services/Redis.ts"
import { DeadLetterStore } from "../../../src/status/dead-letters/DeadLetterStore.ts"
import * as RedisDLQStore from "../../../src/status/dead-letters/RedisDLQStore.ts"
import { replay } from "../../../src/status/replay/Replay.ts"
import { ReplayJobs } from "../../../src/status/replay/ReplayJobs.ts"
import * as ReplayWorker from "../../../src/status/replay/ReplayWorker.ts"
import { eventually } from "../../Eventually.ts"
import { TemporaryNames } from "../../TemporaryNames.ts"
import { drained, queue, start, stores, variants } from "../DeadLetterServer.ts"
import { deadLetter } from "../DeadLetters.ts"
import type { JsonAnswer } from "../JsonAnswer.ts"

type Call = (path: string) => Effect.Effect<JsonAnswer>

const over = (get: Call, id: string) =>
  Effect.map(
    eventually(get(`/dlq/replays/${id}`), ({ body }) => body.state !== "running"),
    ({ body }) => body
  )

describe.each(variants)("replays of many dead letters, $name", ({ doors, skip }) => {
  const live = skip ? it.live.skip : it.live

  live("count what was replayed, skipped and failed, and name what was not", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const source = yield* queue("source")
      const gone = (yield* TemporaryNames).queue("gone")
      const { get, post } = yield* start()
      for (let n = 0; n < 50; n++) yield* store.record(deadLetter(n, { source_queue_name: source }))
      yield* store.record(deadLetter("done", { source_queue_name: source, state: "replayed", replayed_at: "then" }))
      yield* store.record(deadLetter("gone", { source_queue_name: gone }))
      const ids = [...Array.from({ length: 50 }, (_, n) => `id-${n}`), "id-done", "id-gone", "id-none", "id-1"]
      const { body: started, status } = yield* post("/dlq/replays", { ids })
      assert.strictEqual(status, 202)
      assert.deepStrictEqual([started.state, started.total, started.filter], ["running", 53, null])
      const { problems, replay_id, started_at, updated_at, ...job } = yield* over(get, started.replay_id)
      assert.isTrue(updated_at >= started_at)
      assert.deepStrictEqual(job, {
        state: "finished",
        force: false,
        filter: null,
        total: 53,
        truncated: false,
        replayed: 50,
        skipped: 2,
        failed: 1,
        unknown: 0,
        remaining: 0,
        waiting: null
      })
      const named = problems.map(({ dlq_id, outcome }: { dlq_id: string; outcome: string }) => [dlq_id, outcome])
      assert.sameDeepMembers(named, [
        ["id-done", "skipped"],
        ["id-none", "skipped"],
        ["id-gone", "failed"]
      ])
      assert.lengthOf(yield* drained(source), 50)
      const { body: listed } = yield* get("/dlq/replays")
      assert.deepStrictEqual(listed.plan_defaults, {
        steps: [1, 10, 100],
        rate: null,
        stop_after: 3,
        wait_seconds: 300
      })
      assert.deepStrictEqual(
        listed.replays.map((job: { replay_id: string }) => job.replay_id),
        [replay_id]
      )
      const cancelled = yield* post(`/dlq/replays/${replay_id}/cancel`)
      assert.strictEqual(cancelled.status, 409)
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
  )

  live("take a whole group as it is, bounded, and say whether there was more", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const source = yield* queue("source")
      const { get, post } = yield* start({}, { worker: null })
      for (let n = 0; n < 12; n++) {
        const exception_type = n % 3 === 0 ? null : "RangeError"
        yield* store.record(deadLetter(n, { source_queue_name: source, exception_type }))
      }
      const filter = { queue_name: "tasks.dlq", reason: "handler_error", exception_type: "RangeError" }
      const { body: first } = yield* post("/dlq/replays", { filter })
      assert.deepStrictEqual([first.total, first.truncated, first.filter], [5, true, filter])
      const { body: nothing } = yield* post("/dlq/replays", { filter: { reason: "invalid_envelope" } })
      assert.deepStrictEqual([nothing.state, nothing.total], ["finished", 0])
      yield* store.record(deadLetter("later", { source_queue_name: source }))
      yield* ReplayWorker.work(first.replay_id, "worker")
      assert.deepStrictEqual((yield* over(get, first.replay_id)).replayed, 5)
      const { body: second } = yield* post("/dlq/replays", { filter })
      assert.deepStrictEqual([second.total, second.truncated], [4, false])
      yield* ReplayWorker.work(second.replay_id, "worker")
      const { body: rest } = yield* post("/dlq/replays", { filter: { ...filter, exception_type: null } })
      yield* ReplayWorker.work(rest.replay_id, "worker")
      assert.deepStrictEqual((yield* over(get, rest.replay_id)).replayed, 4)
      assert.lengthOf(yield* drained(source), 13)
    }).pipe(Effect.scoped, Effect.provide(stores({}, { maxIds: 5 }).pipe(Layer.provideMerge(doors))))
  )

  live("of what nobody knows leave alone what is known when its turn comes, and what somebody is at", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const source = yield* queue("source")
      const { get, post } = yield* start({}, { worker: null })
      const unknown = { state: "replay_unknown", replay_unknown_at: "then", replay_unknown_by: "somebody" } as const
      for (const n of [1, 2]) yield* store.record(deadLetter(n, { source_queue_name: source, ...unknown }))
      yield* store.record(deadLetter(3, { source_queue_name: source }))
      const claim = { dlqId: "id-3", token: "t", force: false }
      yield* store.claim(claim)
      assert.isTrue(yield* store.begin(claim))
      const wish = { filter: { state: "replay_unknown" }, force: true }
      const { body: job } = yield* post("/dlq/replays", wish)
      assert.strictEqual(job.total, 2)
      yield* store.settle(claim, { _tag: "replayed", at: "then", queue: source })
      assert.strictEqual((yield* post("/dlq/messages/id-2/replay?force=true")).status, 200)
      yield* ReplayWorker.work(job.replay_id, "worker")
      const { problems, replayed, skipped } = yield* over(get, job.replay_id)
      assert.deepStrictEqual([replayed, skipped], [1, 1])
      assert.deepStrictEqual(problems, [
        {
          dlq_id: "id-2",
          outcome: "skipped",
          detail: "id-2 is in state replayed, but only records in state replay_unknown are replayed."
        }
      ])
      assert.lengthOf(yield* drained(source), 2)
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
  )

  live("take the open letters of tasks in one request, and are counted before", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const source = yield* queue("source")
      const { get, post } = yield* start({}, { worker: null })
      for (let n = 0; n < 3; n++)
        for (const task_id of ["a", "b", "c"])
          yield* store.record(deadLetter(`${task_id}${n}`, { task_id, source_queue_name: source }))
      yield* store.record(deadLetter("done", { task_id: "a", state: "replayed", replayed_at: "then" }))
      const count = yield* post("/dlq/replays/check", { task_ids: ["a", "none", "a"], plan: {} })
      assert.deepStrictEqual([count.status, count.body], [200, { total: 3, truncated: false }])
      const filtered = yield* post("/dlq/replays/check", { filter: { reason: "handler_error" } })
      assert.deepStrictEqual(filtered.body, { total: 5, truncated: true })
      assert.lengthOf((yield* get("/dlq/replays")).body.replays, 0)
      const { body: job } = yield* post("/dlq/replays", { task_ids: ["b"] })
      assert.deepStrictEqual([job.total, job.truncated, job.filter], [3, false, null])
      yield* ReplayWorker.work(job.replay_id, "worker")
      assert.deepStrictEqual((yield* over(get, job.replay_id)).replayed, 3)
      const { body: both } = yield* post("/dlq/replays", { task_ids: ["a", "b", "c"] })
      assert.deepStrictEqual([both.total, both.truncated], [5, true])
      assert.deepStrictEqual((yield* post("/dlq/replays/check", { task_ids: ["b"] })).body.total, 0)
    }).pipe(Effect.scoped, Effect.provide(stores({}, { maxIds: 5 }).pipe(Layer.provideMerge(doors))))
  )

  live("take the letters of many tasks in their order, until there are enough", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const source = yield* queue("source")
      const { post } = yield* start({}, { worker: null })
      for (const task_id of ["a", "b"])
        for (let n = 0; n < 12; n++)
          yield* store.record(deadLetter(`${task_id}${n}`, { task_id, source_queue_name: source }))
      const others = Array.from({ length: 17 }, (_, n) => `none-${n}`)
      const count = (...task_ids: ReadonlyArray<string>) =>
        Effect.map(post("/dlq/replays/check", { task_ids }), ({ body }) => body)
      assert.deepStrictEqual(yield* count(...others, "b"), { total: 12, truncated: false })
      assert.deepStrictEqual(yield* count("a", ...others, "b"), { total: 20, truncated: true })
    }).pipe(Effect.scoped, Effect.provide(stores({}, { maxIds: 20 }).pipe(Layer.provideMerge(doors))))
  )

  live("that are forced take what a filter without a state means, and by ids whatever is named", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const source = yield* queue("source")
      const { get, post } = yield* start({}, { worker: null })
      for (const n of [1, 2]) yield* store.record(deadLetter(n, { source_queue_name: source }))
      const { body: some } = yield* post("/dlq/replays", { filter: { reason: "handler_error" }, force: true })
      const { body: named } = yield* post("/dlq/replays", { ids: ["id-1", "id-2"], force: true })
      assert.strictEqual((yield* post("/dlq/messages/id-2/replay")).status, 200)
      yield* ReplayWorker.work(some.replay_id, "worker")
      const { replayed, skipped } = yield* over(get, some.replay_id)
      assert.deepStrictEqual([replayed, skipped], [1, 1])
      yield* ReplayWorker.work(named.replay_id, "worker")
      assert.strictEqual((yield* over(get, named.replay_id)).replayed, 2)
      assert.lengthOf(yield* drained(source), 4)
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
  )

  live("that were interrupted know what they began, whoever forced it since", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const source = yield* queue("source")
      const { get, post } = yield* start({}, { worker: null })
      for (const n of ["known", "unknown", "refused"]) {
        yield* store.record(deadLetter(n, { source_queue_name: source, state: "replayed", replayed_at: "then" }))
      }
      const ids = ["id-known", "id-unknown", "id-refused"]
      const { body: job } = yield* post("/dlq/replays", { ids, force: true })
      // a process of it that is gone before it counts
      const batch = { id: job.replay_id, position: 0 }
      yield* replay("id-known", { force: true, job: batch })
      for (const [dlqId, _tag] of [
        ["id-unknown", "unknown"],
        ["id-refused", "reverted"]
      ] as const) {
        const claim = { dlqId, token: dlqId, force: true, job: batch }
        yield* store.claim(claim)
        assert.isTrue(yield* store.begin(claim))
        yield* store.settle(claim, { _tag })
      }
      for (const id of ids) assert.strictEqual((yield* post(`/dlq/messages/${id}/replay?force=true`)).status, 200)
      assert.lengthOf(yield* drained(source), 4)
      yield* ReplayWorker.work(job.replay_id, "worker")
      const { problems, replayed, unknown } = yield* over(get, job.replay_id)
      assert.deepStrictEqual([replayed, unknown], [2, 1])
      assert.deepStrictEqual(
        problems.map(({ dlq_id }: { dlq_id: string }) => dlq_id),
        ["id-unknown"]
      )
      const [message, ...others] = yield* drained(source)
      assert.deepStrictEqual([message?.properties.messageId, others], ["message-refused", []])
      const redis = yield* Redis
      const begun = `${RedisDLQStore.baseOf(redis)}replay:${job.replay_id}:begun`
      assert.strictEqual(yield* redis.command("EXISTS", begun), 0)
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
  )

  live("publish nothing for a worker that comes back when another one is done with its batch", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const jobs = yield* ReplayJobs
      const source = yield* queue("source")
      const { get, post } = yield* start({}, { worker: null })
      for (const n of [1, 2]) yield* store.record(deadLetter(n, { source_queue_name: source }))
      const { body: job } = yield* post("/dlq/replays", { ids: ["id-1", "id-2"], force: true })
      const id = String(job.replay_id)
      assert.isTrue(yield* jobs.take(id, "A", 50))
      const { force, ids, position } = yield* jobs.next(id, 1)
      yield* Effect.sleep("100 millis")
      yield* ReplayWorker.work(id, "B", { window: 1 })
      for (const dlqId of ids) {
        const error = yield* Effect.flip(replay(dlqId, { force, job: { id, position } }))
        assert.propertyVal(error, "reason", "begun")
      }
      const progress = { replayed: 1, skipped: 0, failed: 0, unknown: 0, problems: [] }
      assert.strictEqual(yield* jobs.advance(id, "A", position, progress), "lost")
      assert.strictEqual((yield* over(get, id)).replayed, 2)
      assert.lengthOf(yield* drained(source), 2)
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
  )

  live("are one job for one idempotency key", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      yield* store.record(deadLetter(1))
      const { call } = yield* start({}, { worker: null })
      const ask = (body: unknown, key: string) => call("POST", "/dlq/replays", body, { "idempotency-key": key })
      const answers = yield* Effect.forEach(
        Array.from({ length: 20 }),
        () => ask({ filter: { reason: "handler_error" } }, "k"),
        { concurrency: "unbounded" }
      )
      assert.lengthOf([...new Set(answers.map(({ body }) => body.replay_id))], 1)
      assert.deepStrictEqual(answers.map(({ status }) => status).sort(), [...Array(19).fill(200), 202])
      assert.strictEqual((yield* ask({ filter: { reason: "other" } }, "k")).status, 422)
      assert.strictEqual((yield* ask({ filter: { reason: "handler_error" } }, "other")).status, 202)
      const third = yield* ask({ filter: { reason: "handler_error" } }, "third")
      assert.strictEqual(third.status, 503)
      assert.match(third.body.detail, /Too many replay jobs/)
    }).pipe(Effect.scoped, Effect.provide(stores({}, { maxRunning: 2 }).pipe(Layer.provideMerge(doors))))
  )

  live("are worked on by one process, and stop when they are cancelled", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const source = yield* queue("source")
      for (let n = 0; n < 200; n++) yield* store.record(deadLetter(n, { source_queue_name: source }))
      const options = { window: 5, perSecond: 50 }
      const { get, post } = yield* start({}, { worker: options })
      yield* start({}, { worker: options })
      const { body: job } = yield* post("/dlq/replays", { filter: { reason: "handler_error" } })
      yield* eventually(get(`/dlq/replays/${job.replay_id}`), ({ body }) => body.replayed > 0)
      const { body: cancelled, status } = yield* post(`/dlq/replays/${job.replay_id}/cancel`)
      assert.deepStrictEqual([status, cancelled.state], [200, "cancelled"])
      assert.strictEqual((yield* post(`/dlq/replays/${job.replay_id}/cancel`)).status, 200)
      // what was being published is counted when its worker lets go of the job
      const redis = yield* Redis
      const worker = redis.command("HGET", `${RedisDLQStore.baseOf(redis)}replay:${job.replay_id}`, "worker")
      yield* eventually(worker, (found) => found === null)
      const { body: after } = yield* get(`/dlq/replays/${job.replay_id}`)
      const [{ open_count } = { open_count: 0 }] = yield* store.queues
      assert.strictEqual(open_count, after.remaining)
      assert.isAbove(after.remaining, 0)
      assert.lengthOf(yield* drained(source), after.replayed)
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
  )

  live("wait for a broker that takes nothing, say so, and go on", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const source = yield* queue("source")
      for (let n = 0; n < 20; n++) yield* store.record(deadLetter(n, { source_queue_name: source }))
      let away = true
      const leaving = yield* Effect.map(Broker, (broker) =>
        Layer.succeed(Broker, {
          ...broker,
          publish: (publication) =>
            Effect.suspend(() =>
              away
                ? Effect.succeed({ _tag: "Refused", reason: "unreachable", detail: "gone" } as const)
                : broker.publish(publication)
            )
        })
      )
      const { get, post } = yield* Effect.provide(start(), leaving)
      const { body: job } = yield* post("/dlq/replays", { filter: { reason: "handler_error" } })
      yield* eventually(get(`/dlq/replays/${job.replay_id}`), ({ body }) => /unreachable/.test(body.waiting))
      assert.deepStrictEqual((yield* store.queues)[0]?.open_count, 20)
      away = false
      const { replayed, waiting } = yield* over(get, job.replay_id)
      assert.deepStrictEqual([replayed, waiting], [20, null])
      assert.lengthOf(yield* drained(source), 20)
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
  )

  live("count what they replayed when they are cancelled while the rest waits", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const source = yield* queue("source")
      for (let n = 0; n < 6; n++) yield* store.record(deadLetter(n, { source_queue_name: source }))
      const answers = new Set(["message-0", "message-1"])
      const partly = yield* Effect.map(Broker, (broker) =>
        Layer.succeed(Broker, {
          ...broker,
          publish: (publication) => {
            const id = publication.properties.messageId ?? ""
            // under way when the job is cancelled
            if (id === "message-2") return Effect.delay(broker.publish(publication), "1 second")
            if (answers.has(id)) return broker.publish(publication)
            return Effect.succeed({ _tag: "Refused", reason: "blocked", detail: "no memory" } as const)
          }
        })
      )
      const { get, post } = yield* Effect.provide(start({}, { worker: { leaseSeconds: 1 } }), partly)
      const { body: job } = yield* post("/dlq/replays", { filter: { reason: "handler_error" } })
      yield* eventually(get(`/dlq/replays/${job.replay_id}`), ({ body }) => /no memory/.test(body.waiting))
      assert.strictEqual((yield* post(`/dlq/replays/${job.replay_id}/cancel`)).status, 200)
      const { body } = yield* eventually(get(`/dlq/replays/${job.replay_id}`), ({ body }) => body.replayed > 0)
      assert.deepInclude(body, { state: "cancelled", replayed: 3, remaining: 3, waiting: null })
      assert.lengthOf(yield* drained(source), 3)
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
  )

  live("publish each record once, forced or not, when they are paused while records wait", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const waits = new Set(["message-0", "message-2"])
      const partly = yield* Effect.map(Broker, (broker) =>
        Layer.succeed(Broker, {
          ...broker,
          publish: (publication) =>
            waits.has(publication.properties.messageId ?? "")
              ? Effect.succeed({ _tag: "Refused", reason: "blocked", detail: "no memory" } as const)
              : broker.publish(publication)
        })
      )
      const { get, post } = yield* Effect.provide(start({}, { worker: { leaseSeconds: 1 } }), partly)
      const plan = { steps: ["rest"], stop_after: null, wait_seconds: 1 }
      for (const [force, end] of [
        [false, "finished"],
        [true, "finished"],
        [true, "cancelled"]
      ] as const) {
        const source = yield* queue("source")
        const all = [0, 1, 2, 3].map((n) => deadLetter(n, { dlq_id: `${source}-${n}`, source_queue_name: source }))
        for (const letter of all) yield* store.record(letter)
        for (const n of [0, 2]) waits.add(`message-${n}`)
        const { body: job } = yield* post("/dlq/replays", { ids: all.map(({ dlq_id }) => dlq_id), force, plan })
        const path = `/dlq/replays/${job.replay_id}`
        yield* eventually(get(path), ({ body }) => /no memory/.test(body.waiting))
        assert.strictEqual((yield* post(`${path}/pause`, { reason: "x" })).status, 200)
        const paused = yield* eventually(get(path), ({ body }) => body.replayed > 0)
        assert.deepInclude(paused.body, { state: "paused", replayed: 2, skipped: 0, remaining: 2, waiting: null })
        waits.clear()
        yield* post(`${path}/${end === "finished" ? "resume" : "cancel"}`)
        const over = yield* eventually(get(path), ({ body }) => body.state === end)
        const replayed = end === "finished" ? 4 : 2
        assert.deepInclude(over.body, { replayed, skipped: 0, failed: 0, remaining: 4 - replayed })
        const published = (yield* drained(source)).map(({ properties }) => properties.messageId)
        assert.sameMembers(published, ["message-1", "message-3", "message-0", "message-2"].slice(0, replayed))
      }
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
  )
})
