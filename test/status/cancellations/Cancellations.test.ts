import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import * as ControlStore from "../../../src/messaging/control/ControlStore.ts"
import { Redis } from "../../../src/services/Redis.ts"
import { TaskCancellation } from "../../../src/status/queues/TaskCancellation.ts"
import { eventually } from "../../Eventually.ts"
import { answer, inMemory, numbered, services, start, tasks, variants } from "./CancelledTasks.ts"

const why = { reason: "a wrong campaign", by: "ada" }

interface Counts {
  readonly total: number
  readonly cancelled: number
  readonly requested: number
  readonly ended: number
  readonly failed: number
  readonly remaining: number
}

const countsOf = ({ cancelled, ended, failed, remaining, requested, total }: Counts) => ({
  total,
  cancelled,
  requested,
  ended,
  failed,
  remaining
})

describe.each(variants)("cancellations of many tasks, $name", ({ doors, skip }) => {
  const live = skip ? it.live.skip : it.live

  live("take all that match a search, count each answer, and end with the last one", () =>
    Effect.gen(function* () {
      const { get, job, post } = yield* start()
      yield* tasks(numbered(1, 250))
      yield* tasks(["other"], { type: "read" })
      yield* tasks(numbered(900, 905), { isTerminal: true })
      const query = { type: "mail", since: "9999d" }
      const { body: begun, status } = yield* post({ query, ...why })
      assert.strictEqual(status, 202)
      assert.deepInclude(begun, { state: "running", total: 250, truncated: false, asked_before: 0, query, ...why })
      const id: string = begun.cancellation_id
      const asked = yield* eventually(job(id), ({ requested }) => requested === 250)
      assert.deepInclude(asked, { state: "following", remaining: 0, stopped: null, ended_at: null })
      for (const task of numbered(1, 100)) yield* answer(task, "cancelled")
      for (const task of numbered(101, 110)) yield* answer(task, "ended")
      // a task may end without an answer of its worker
      yield* tasks(["t-00111"], { isTerminal: true })
      yield* tasks(["t-00112"], { isTerminal: true, status: "cancelled" })
      yield* eventually(job(id), ({ requested }) => requested === 138)
      for (const task of numbered(113, 250)) yield* answer(task, "cancelled")
      const { ended_at, problems, ...ended } = yield* eventually(job(id), ({ ended_at }) => ended_at !== null)
      assert.strictEqual(ended.state, "finished")
      assert.deepStrictEqual(countsOf(ended), {
        total: 250,
        cancelled: 239,
        requested: 0,
        ended: 11,
        failed: 0,
        remaining: 0
      })
      assert.isTrue(ended_at >= ended.started_at)
      assert.deepStrictEqual(problems, [])
      const requestOfOther = yield* (yield* TaskCancellation).requestOf("other")
      assert.isTrue(Option.isNone(requestOfOther))
      const { body: listed } = yield* get()
      assert.deepStrictEqual(listed, {
        cancellations: [{ ...ended, ended_at }],
        next_cursor: null,
        tasks_at_most: 10_000,
        task_ids_at_most: 500
      })
    }).pipe(Effect.scoped, Effect.provide(services().pipe(Layer.provideMerge(doors()))))
  )

  live("take tasks by their ids, each once, and say which had ended and which request was withdrawn", () =>
    Effect.gen(function* () {
      const { job, post } = yield* start()
      yield* tasks(["waits", "withdrawn"])
      yield* tasks(["done"], { isTerminal: true })
      const task_ids = ["waits", "done", "waits", "withdrawn", "never seen"]
      const { body: begun } = yield* post({ task_ids, reason: "not needed" })
      assert.deepInclude(begun, { total: 4, query: null, by: null })
      const id: string = begun.cancellation_id
      const asked = yield* eventually(job(id), ({ remaining }) => remaining === 0)
      assert.deepInclude(countsOf(asked), { requested: 3, ended: 1 })
      const cancellation = yield* TaskCancellation
      yield* cancellation.withdraw("withdrawn")
      yield* answer("waits", "cancelled")
      yield* answer("never seen", "cancelled")
      const ended = yield* eventually(job(id), ({ state }) => state === "finished")
      assert.deepInclude(ended, { cancelled: 2, ended: 1, withdrawn: 1, failed: 0, withdrawn_at: null, problems: [] })
    }).pipe(Effect.scoped, Effect.provide(services().pipe(Layer.provideMerge(doors()))))
  )

  live("take the newest of too many, and another one with the same search goes on with the next", () =>
    Effect.gen(function* () {
      const { job, post } = yield* start()
      yield* tasks(numbered(1, 25))
      const query = { status: "pending", ended: "false" }
      const asked = Effect.gen(function* () {
        const { body } = yield* post({ query, ...why })
        return yield* eventually(job(body.cancellation_id), ({ remaining }) => remaining === 0)
      })
      const requested = Effect.gen(function* () {
        const requests = yield* (yield* TaskCancellation).requestsOf(numbered(1, 25))
        return requests.filter(Option.isSome).length
      })
      assert.deepInclude(yield* asked, { total: 10, truncated: true, asked_before: 0, requested: 10 })
      assert.isTrue(Option.isSome(yield* (yield* TaskCancellation).requestOf("t-00010")))
      assert.strictEqual(yield* requested, 10)
      assert.deepInclude(yield* asked, { total: 10, truncated: true, asked_before: 10, requested: 10 })
      assert.deepInclude(yield* asked, { total: 5, truncated: false, asked_before: 20, requested: 5 })
      assert.strictEqual(yield* requested, 25)
      const nothing = yield* asked
      assert.deepInclude(nothing, { state: "finished", total: 0, truncated: false, asked_before: 25 })
    }).pipe(Effect.scoped, Effect.provide(services({ maxTasks: 10 }).pipe(Layer.provideMerge(doors()))))
  )

  live("that are stopped ask for no further task, and count the answers of those that were asked for", () =>
    Effect.gen(function* () {
      const { job, post, stop } = yield* start({ window: 5, perSecond: 10 })
      yield* tasks(numbered(1, 40))
      const { body: begun } = yield* post({ query: { type: "mail" }, ...why })
      const id: string = begun.cancellation_id
      yield* eventually(job(id), ({ requested }) => requested > 0)
      const { body: stopped, status } = yield* stop(id)
      assert.strictEqual(status, 200)
      assert.deepInclude(stopped, { state: "following" })
      assert.isNull(stopped.stopped.reason)
      assert.strictEqual((yield* stop(id)).status, 200)
      yield* Effect.sleep("700 millis")
      const { remaining, requested } = yield* job(id)
      assert.isAtLeast(remaining, 25)
      assert.strictEqual(remaining + requested, 40)
      for (const task of numbered(1, requested)) yield* answer(task, "cancelled")
      const ended = yield* eventually(job(id), ({ state }) => state === "stopped")
      assert.deepStrictEqual(countsOf(ended), {
        total: 40,
        cancelled: requested,
        requested: 0,
        ended: 0,
        failed: 0,
        remaining
      })
      assert.strictEqual((yield* stop(id)).status, 200)
    }).pipe(Effect.scoped, Effect.provide(services().pipe(Layer.provideMerge(doors()))))
  )

  live("take back what has had no effect yet, also after their end, and no request of somebody else", () =>
    Effect.gen(function* () {
      const { job, post, withdraw } = yield* start({ followSeconds: 1 })
      yield* tasks(numbered(1, 5))
      const cancellation = yield* TaskCancellation
      yield* cancellation.request({ taskId: "t-00005", reason: "another one", by: "bob" })
      const { body: begun } = yield* post({ task_ids: numbered(1, 5), reason: "not needed" })
      const id: string = begun.cancellation_id
      yield* eventually(job(id), ({ requested }) => requested === 5)
      yield* answer("t-00001", "cancelled")
      const ended = yield* eventually(job(id), ({ state }) => state === "finished")
      assert.deepInclude(ended, { cancelled: 1, requested: 4, withdrawn: 0 })
      const { body: withdrawn, status } = yield* withdraw(id)
      assert.strictEqual(status, 202)
      assert.deepInclude(withdrawn, { state: "following", ended_at: null })
      const again = yield* eventually(job(id), ({ state }) => state === "finished")
      assert.deepInclude(again, { total: 5, cancelled: 1, requested: 1, withdrawn: 3, failed: 0, remaining: 0 })
      assert.isNotNull(again.withdrawn_at)
      const left = yield* cancellation.requestsOf(numbered(2, 5))
      assert.deepStrictEqual(
        left.map((request) => Option.getOrUndefined(request)?.reason),
        [undefined, undefined, undefined, "another one"]
      )
      yield* answer("t-00005", "cancelled")
      assert.strictEqual((yield* withdraw(id)).status, 202)
      yield* eventually(job(id), ({ requested, state }) => state === "finished" && requested === 0)
      assert.strictEqual((yield* withdraw(id)).status, 409)
      assert.strictEqual((yield* withdraw("00000000-0000-4000-8000-000000000000")).status, 404)
    }).pipe(Effect.scoped, Effect.provide(services().pipe(Layer.provideMerge(doors()))))
  )

  live("that are withdrawn while they ask for tasks ask for no other one", () =>
    Effect.gen(function* () {
      const { job, post, withdraw } = yield* start({ window: 5, perSecond: 10 })
      yield* tasks(numbered(1, 40))
      const { body: begun } = yield* post({ query: { type: "mail" }, ...why })
      yield* eventually(job(begun.cancellation_id), ({ requested }) => requested > 0)
      assert.strictEqual((yield* withdraw(begun.cancellation_id)).status, 202)
      const ended = yield* eventually(job(begun.cancellation_id), ({ state }) => state === "stopped")
      assert.deepInclude(ended, { requested: 0, failed: 0, total: 40 })
      assert.strictEqual(ended.withdrawn + ended.remaining, 40)
      const requests = yield* (yield* TaskCancellation).requestsOf(numbered(1, 40))
      assert.isFalse(requests.some(Option.isSome))
    }).pipe(Effect.scoped, Effect.provide(services().pipe(Layer.provideMerge(doors()))))
  )

  live("that wait for workers end in time, and say how many have not answered", () =>
    Effect.gen(function* () {
      const { job, post, stop, withdraw } = yield* start({ followSeconds: 1 })
      yield* tasks(numbered(1, 3))
      const { body: begun } = yield* post({ query: { type: "mail" }, ...why })
      yield* eventually(job(begun.cancellation_id), ({ state }) => state === "following")
      const { body, status } = yield* stop(begun.cancellation_id)
      assert.strictEqual(status, 409)
      assert.match(body.detail, /^The workers of all of its tasks were asked already/)
      const ended = yield* eventually(job(begun.cancellation_id), ({ state }) => state === "finished")
      assert.deepInclude(countsOf(ended), { total: 3, requested: 3, remaining: 0 })
      // an earlier release kept no list of the open requests
      const redis = yield* Redis
      yield* redis.command("DEL", `${redis.key("svc:{cancellations}:")}job:${begun.cancellation_id}:open`)
      const withdrawn = yield* withdraw(begun.cancellation_id)
      assert.strictEqual(withdrawn.status, 409)
      assert.match(withdrawn.body.detail, /^It ended under an earlier release/)
    }).pipe(Effect.scoped, Effect.provide(services().pipe(Layer.provideMerge(doors()))))
  )

  live("that are not done in time stop themselves", () =>
    Effect.gen(function* () {
      const { job, post } = yield* start({ window: 1, perSecond: 2, maxSeconds: 1 })
      yield* tasks(numbered(1, 9))
      const { body: begun } = yield* post({ query: { type: "mail" }, ...why })
      const ended = yield* eventually(job(begun.cancellation_id), ({ state }) => state === "stopped")
      assert.isAbove(ended.remaining, 0)
      assert.strictEqual(ended.stopped.reason, "It was not done in time. Start another one for the rest.")
    }).pipe(Effect.scoped, Effect.provide(services().pipe(Layer.provideMerge(doors()))))
  )

  live("are kept in a bounded number, the newest ones, and running ones in any case", () =>
    Effect.gen(function* () {
      const { get, post } = yield* start(null)
      const ids: Array<string> = []
      const begin = Effect.gen(function* () {
        const { body, status } = yield* post({ query: { type: "mail" }, ...why })
        if (status === 202) ids.push(body.cancellation_id)
        return status
      })
      yield* tasks(numbered(1, 3))
      yield* begin
      yield* tasks(numbered(1, 3), { isTerminal: true })
      for (let n = 0; n < 4; n++) yield* begin
      const kept = [ids[4], ids[3], ids[0]]
      const { body: listed } = yield* get()
      assert.deepStrictEqual(
        listed.cancellations.map(({ cancellation_id }: { cancellation_id: string }) => cancellation_id),
        kept
      )
      const { body: first } = yield* get("?limit=1")
      const { body: second } = yield* get(`?limit=2&cursor=${first.next_cursor}`)
      assert.strictEqual(second.cancellations[1].cancellation_id, ids[0])
      assert.strictEqual((yield* get(`/${ids[1]}`)).status, 404)
      yield* tasks(numbered(4, 5))
      assert.strictEqual(yield* begin, 202)
      assert.strictEqual(yield* begin, 503)
    }).pipe(Effect.scoped, Effect.provide(services({ maxJobs: 3, maxRunning: 2 }).pipe(Layer.provideMerge(doors()))))
  )
})

describe("requests for cancellations of many tasks", () => {
  it.live("begin once with the same idempotency key, and are refused with it for something else", () =>
    Effect.gen(function* () {
      const { post } = yield* start(null)
      yield* tasks(["a", "b"])
      const headers = { "idempotency-key": "k1" }
      const first = yield* post({ task_ids: ["a"], ...why }, headers)
      const again = yield* post({ task_ids: ["a"], ...why }, headers)
      assert.deepStrictEqual([first.status, again.status], [202, 200])
      assert.strictEqual(again.body.cancellation_id, first.body.cancellation_id)
      assert.strictEqual((yield* post({ task_ids: ["b"], ...why }, headers)).status, 422)
      assert.strictEqual((yield* post({ task_ids: ["b"], ...why }, { "idempotency-key": "k".repeat(256) })).status, 422)
    }).pipe(Effect.scoped, Effect.provide(services().pipe(Layer.provideMerge(inMemory))))
  )

  it.live("are refused with the name of the member that is wrong", () =>
    Effect.gen(function* () {
      const { call, get, post } = yield* start(null)
      const refused = (body: unknown) =>
        Effect.map(post(body), ({ body: { detail }, status }) => [status, detail[0]?.loc[1]])
      const cases: ReadonlyArray<readonly [unknown, string]> = [
        ["no JSON", ""],
        [{ ...why }, "task_ids"],
        [{ task_ids: ["a"], query: { type: "mail" }, ...why }, "task_ids"],
        [{ task_ids: [], ...why }, "task_ids"],
        [{ task_ids: [" "], ...why }, "task_ids"],
        [{ task_ids: numbered(1, 501), ...why }, "task_ids"],
        [{ task_ids: ["x".repeat(256)], ...why }, "task_ids"],
        [{ task_ids: ["a"] }, "reason"],
        [{ task_ids: ["a"], ...why, force: true }, "force"],
        [{ query: {}, ...why }, "query"],
        [{ query: { type: "" }, ...why }, "query"],
        [{ query: { type: 5 }, ...why }, "query"],
        [{ query: { colour: "red" }, ...why }, "query.colour"],
        [{ query: { "attr.page": "1" }, ...why }, "query.attr.page"],
        [{ query: { since: "yesterday" }, ...why }, "query.since"],
        [{ query: { ended: "true" }, ...why }, "query.ended"],
        [{ query: { limit: "5" }, ...why }, "query.limit"]
      ]
      for (const [body, name] of cases) assert.deepStrictEqual(yield* refused(body), [422, name], JSON.stringify(body))
      assert.strictEqual((yield* post("x".repeat(1_100_000))).status, 413)
      assert.strictEqual((yield* get("/none")).status, 404)
      assert.strictEqual((yield* get("?cursor=none")).status, 422)
      assert.strictEqual((yield* call("POST", "/00000000-0000-4000-8000-000000000000/stop")).status, 404)
      assert.strictEqual((yield* call("DELETE", "")).status, 405)
      assert.deepStrictEqual((yield* get()).body.cancellations, [])
    }).pipe(Effect.scoped, Effect.provide(services().pipe(Layer.provideMerge(inMemory))))
  )

  it.live("find tasks by attributes and words, as lists do", () =>
    Effect.gen(function* () {
      const { post } = yield* start(null)
      yield* tasks(["a-1"], { attributes: { book: "42" } })
      yield* tasks(["a-2", "b-1"], { attributes: { book: "43" } })
      const total = (query: Readonly<Record<string, string>>) =>
        Effect.map(post({ query, ...why }), ({ body }) => body.total)
      assert.strictEqual(yield* total({ "attr.book": "43" }), 2)
      assert.strictEqual(yield* total({ q: "A-" }), 2)
      assert.strictEqual(yield* total({ q: "A-", "attr.book": "43", worker: "" }), 1)
    }).pipe(Effect.scoped, Effect.provide(services().pipe(Layer.provideMerge(inMemory))))
  )

  it.live("stop themselves where there are too many requests that no worker has answered", () =>
    Effect.gen(function* () {
      const { job, post } = yield* start({ window: 10 })
      yield* tasks(numbered(1, 30))
      const { body: begun } = yield* post({ query: { type: "mail" }, ...why })
      const following = yield* eventually(job(begun.cancellation_id), ({ stopped }) => stopped !== null)
      assert.match(following.stopped.reason, /^There are 50,000 requests to cancel that no worker has answered yet/)
      assert.deepInclude(countsOf(following), { requested: 15, remaining: 15 })
      const asked = yield* (yield* TaskCancellation).requestsOf(numbered(1, 30))
      for (const request of asked) if (Option.isSome(request)) yield* answer(request.value.task_id, "cancelled")
      const ended = yield* eventually(job(begun.cancellation_id), ({ state }) => state === "stopped")
      assert.deepInclude(countsOf(ended), { cancelled: 15, requested: 0, remaining: 15 })
    }).pipe(Effect.scoped, Effect.provide(withRoomFor(15)))
  )
})

/** A store of requests that is full after so many. */
const withRoomFor = (room: number) => {
  let left = room
  const full = Layer.effect(
    ControlStore.ControlStore,
    Effect.map(ControlStore.ControlStore, (store) =>
      ControlStore.ControlStore.of({
        ...store,
        requestCancel: (input) => (left-- > 0 ? store.requestCancel(input) : Effect.succeed("full"))
      })
    )
  ).pipe(Layer.provide(ControlStore.layer()))
  return services({}, full).pipe(Layer.provideMerge(inMemory))
}
