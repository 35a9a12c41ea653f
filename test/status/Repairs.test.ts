import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, Option, Redacted, type Scope } from "effect"
import { TestClock } from "effect/testing"
import type { DeadLetterRecord } from "../../src/messaging/failure/DeadLetter.ts"
import type { Broker } from "../../src/services/Broker.ts"
import { Redis, RedisError } from "../../src/services/Redis.ts"
import * as ArchiveSweeper from "../../src/status/dead-letters/ArchiveSweeper.ts"
import { DeadLetterStore } from "../../src/status/dead-letters/DeadLetterStore.ts"
import * as RedisDLQStore from "../../src/status/dead-letters/RedisDLQStore.ts"
import * as BearerToken from "../../src/status/http/BearerToken.ts"
import { replay } from "../../src/status/replay/Replay.ts"
import { ReplayJobs } from "../../src/status/replay/ReplayJobs.ts"
import * as ReplayOutcomes from "../../src/status/replay/ReplayOutcomes.ts"
import { eventually } from "../Eventually.ts"
import type { TemporaryNames } from "../TemporaryNames.ts"
import { inMemory, queue, start, stores, variants } from "./DeadLetterServer.ts"
import { deadLetter } from "./DeadLetters.ts"
import { world } from "./RepairedWorld.ts"

describe.each(variants)("repairs of dead letters, $name", ({ doors, skip }) => {
  const live = (
    title: string,
    test: () => Effect.Effect<void, unknown, Broker | Redis | TemporaryNames | Scope.Scope>
  ) => it.live.skipIf(skip)(title, () => test().pipe(Effect.scoped, Effect.provide([doors, Logger.layer([])])), 60_000)

  live("an edit replays the new payload as a new record, and its outcome is followed", () =>
    Effect.gen(function* () {
      const { fail, get, handled, letterOf, post } = yield* world
      const letter = yield* fail("t1", "RangeError", { order: 1 })
      const message = `/dlq/messages/${letter}`
      const first = yield* post(`${message}/edits`, '{"payload":{"order":12345678901234567890}}')
      assert.strictEqual(first.status, 201, JSON.stringify(first.body))
      const { dlq_id } = first.body
      assert.deepInclude(first.body, { edited_from: letter, state: "replayed", problem: null })
      assert.deepInclude(first.body, { task_id: "t1", changed: ["payload.bad", "payload.order"] })
      yield* eventually(get(message), ({ body }) => body.replacement?.replay_outcome?.outcome === "handled")
      assert.deepStrictEqual(handled, ["t1"])
      const { body: old } = yield* get(message)
      assert.deepInclude(old, { state: "replaced", replaced_by: dlq_id })
      const { body: edited } = yield* get(`/dlq/messages/${dlq_id}`)
      assert.deepInclude(edited, { edited_from: letter, task_id: "t1", state: "replayed", replay_count: 1 })
      assert.isUndefined(edited.replaced_by)
      // The number is one that JavaScript would round.
      assert.include(JSON.stringify(edited.body), "12345678901234567000")
      const again = yield* post(`${message}/edits`, { payload: {} })
      assert.strictEqual(again.status, 409)
      assert.include(again.body.detail, dlq_id)
      assert.strictEqual((yield* post(`${message}/replay?force=true`)).status, 409)
      assert.strictEqual((yield* post(`/dlq/messages/${dlq_id}/edits`, { payload: {} })).status, 409)

      const other = yield* fail("t2")
      const { body: bad } = yield* post(`/dlq/messages/${other}/edits`, { payload: { bad: "TypeError" } })
      const failed = yield* eventually(
        get(`/dlq/messages/${bad.dlq_id}`),
        ({ body }) => body.replay_outcome?.outcome === "failed_again"
      )
      const next = yield* letterOf("t2")
      assert.strictEqual(failed.body.replay_outcome.failed_again_as, next)
      assert.strictEqual((yield* get(`/dlq/messages/${next}`)).body.exception_type, "TypeError")
      const { body: groups } = yield* get("/dlq/groups")
      assert.deepStrictEqual(groups.groups[0].exception_type, "TypeError")
      assert.match(groups.groups[0].stack_line, /^at .*RepairedTasks/)
      assert.strictEqual(groups.groups[0].trend.counts.at(-1), 1)
      assert.strictEqual((yield* post(`/dlq/messages/${next}/edits`, { payload: {} })).status, 201)
      yield* eventually(
        Effect.sync(() => handled),
        (handled) => handled.includes("t2")
      )
    })
  )

  live("an edit that is no envelope, too large or of the wrong kind is refused, and changes nothing", () =>
    Effect.gen(function* () {
      const { fail, get, post, store } = yield* world
      const letter = yield* fail("t1")
      const edits = `/dlq/messages/${letter}/edits`
      const before = (yield* get(`/dlq/messages/${letter}`)).body
      const refusals: ReadonlyArray<readonly [unknown, string]> = [
        ["{", ""],
        [{}, "payload"],
        [{ payload: {}, body: {} }, "payload"],
        [{ payload: [] }, "payload"],
        [{ payload: "text" }, "payload"],
        ['{"payload":12345678901234567890}', "payload"],
        [{ body: [] }, "body"],
        [{ body: { payload: {} } }, "body.task_id"],
        [{ body: { task_id: "t1", payload: "x" } }, "body.payload"],
        [{ body: { task_id: "x".repeat(300), payload: {} } }, "body.task_id"],
        [{ payload: {}, sure: true }, "sure"]
      ]
      for (const [body, field] of refusals) {
        const { body: answer, status } = yield* post(edits, body)
        assert.deepStrictEqual([status, answer.detail[0]?.loc], [422, ["body", field]], JSON.stringify(body))
        const checked = yield* post(`${edits}/check`, body)
        assert.deepStrictEqual([checked.status, checked.body], [status, answer])
      }
      const valid = yield* post(`${edits}/check`, { payload: { order: 2 } })
      assert.deepInclude(valid.body, { dlq_id: letter, valid: true, task_id: "t1" })
      assert.strictEqual((yield* post(edits, { payload: { text: "x".repeat(2 ** 20) } })).status, 413)
      assert.strictEqual((yield* post("/dlq/messages/none/edits", { payload: {} })).status, 404)
      assert.strictEqual((yield* post("/dlq/messages/none/edits/check", { payload: {} })).status, 404)
      assert.deepStrictEqual((yield* get(`/dlq/messages/${letter}`)).body, before)
      const claim = { dlqId: letter, token: "t", force: false }
      assert.strictEqual((yield* store.claim(claim))._tag, "Claimed")
      const busy = yield* post(edits, { payload: {} })
      assert.deepStrictEqual([busy.status, /in progress/.test(busy.body.detail)], [409, true])
      assert.strictEqual((yield* post(`/dlq/messages/${letter}/archive`, { reason: "x" })).status, 409)
      yield* store.settle(claim, { _tag: "released" })
      const letters = (yield* get("/dlq/messages")).body.items
      assert.lengthOf(letters, 1)
    })
  )

  live("an archived letter leaves lists, counts and its queue, does not come back, and can be taken out again", () =>
    Effect.gen(function* () {
      const { fail, get, handled, letters, mends, post, queued } = yield* world
      const letter = yield* fail("t1")
      const kept = yield* fail("t2")
      const archive = `/dlq/messages/${letter}/archive`
      const without = yield* post(archive, {})
      assert.deepStrictEqual([without.status, without.body.detail[0].loc], [422, ["body", "reason"]])
      const archived = yield* post(archive, { reason: "a test order", by: "ada" })
      assert.deepInclude(archived.body, { dlq_id: letter, state: "archived" })
      assert.deepInclude(archived.body.archive, { reason: "a test order", by: "ada" })
      assert.strictEqual((yield* post(archive, { reason: "x" })).status, 409)
      const ids = (query: string) =>
        Effect.map(get(`/dlq/messages${query}`), ({ body }) =>
          body.items.map(({ dlq_id }: { readonly dlq_id: string }) => dlq_id)
        )
      assert.deepStrictEqual(yield* ids(""), [kept])
      assert.deepStrictEqual(yield* ids("?task_id=t1"), [])
      assert.deepStrictEqual(yield* ids("?state=archived"), [letter])
      assert.deepStrictEqual(yield* ids(`?state=archived&task_id=t2&queue_name=${letters}`), [])
      assert.strictEqual((yield* get("/dlq/groups")).body.groups[0].count, 1)
      assert.strictEqual((yield* post(`/dlq/messages/${letter}/replay?force=true`)).status, 409)
      assert.strictEqual((yield* post(`/dlq/messages/${letter}/edits`, { payload: {} })).status, 409)
      yield* eventually(queued(letters), (messages) => messages === 1)
      const indexed = yield* eventually(
        post("/dlq/queues/index", { queue_name: letters }),
        ({ body }) => body.messages === 1
      )
      assert.deepInclude(indexed.body, { indexed: 0, known: 1 })
      const [queue] = (yield* get("/dlq/queues")).body.queues
      assert.deepInclude(queue, { indexed_count: 1, archived_count: 1, open_count: 1 })

      const back = yield* post(`/dlq/messages/${letter}/unarchive`)
      assert.deepStrictEqual(back.body, { dlq_id: letter, state: "dead_lettered", archive: null })
      assert.strictEqual((yield* post(`/dlq/messages/${letter}/unarchive`)).status, 409)
      assert.deepStrictEqual(yield* ids("?state=archived"), [])
      assert.sameMembers(yield* ids(""), [letter, kept])
      mends.add("t1")
      assert.strictEqual((yield* post(`/dlq/messages/${letter}/replay`)).status, 200)
      yield* eventually(get(`/dlq/messages/${letter}`), ({ body }) => body.replay_outcome.outcome === "handled")
      assert.deepStrictEqual(handled, ["t1"])
    })
  )

  live("a group knows with which releases of the tasks its cause was first and last seen", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const versions = Effect.map(store.groups({ limit: 10 }), ({ items }) =>
        items.map(({ first_version, last_version }) => [first_version, last_version])
      )
      const failed = (n: number, worker_version?: string) =>
        store.record(
          deadLetter(n, {
            dead_lettered_at: `2026-11-20T12:00:0${n}.000000+00:00`,
            ...(worker_version !== undefined && { worker_version })
          })
        )
      yield* failed(2, "1.1.0")
      assert.deepStrictEqual(yield* versions, [["1.1.0", "1.1.0"]])
      // records are stored late where Redis was away
      yield* failed(1, "1.0.0")
      yield* failed(3, "1.2.0")
      assert.deepStrictEqual(yield* versions, [["1.0.0", "1.2.0"]])
      yield* failed(4)
      assert.deepStrictEqual(yield* versions, [["1.0.0", null]])
      assert.strictEqual((yield* store.get("id-3"))?.worker_version, "1.2.0")
    }).pipe(Effect.provide(stores()))
  )

  live("many are archived by ids or a filter, and come back; one that cannot be does not hold up the others", () =>
    Effect.gen(function* () {
      const { fail, get, post, store } = yield* world
      const archive = "/dlq/messages/archive"
      const letters = yield* Effect.forEach(["t1", "t2", "t3"], (task) => fail(task))
      const [first = "", second = "", third = ""] = letters
      const claim = { dlqId: first, token: "another", force: false }
      assert.strictEqual((yield* store.claim(claim))._tag, "Claimed")
      const { body, status } = yield* post(archive, { ids: [first, second, second, "absent"], reason: "test orders" })
      assert.deepStrictEqual([status, body.changed, body.ids, body.truncated], [200, 1, [second], false])
      assert.deepStrictEqual(
        body.refused.map(({ dlq_id }: { readonly dlq_id: string }) => dlq_id),
        [first, "absent"]
      )
      assert.match(body.refused[0].detail, /in progress/)
      yield* store.settle(claim, { _tag: "released" })
      const { reason } = (yield* get(`/dlq/messages/${first}`)).body
      const rest = yield* post(archive, { filter: { reason }, reason: "all of them", by: "ada" })
      assert.sameMembers(rest.body.ids, [first, third])
      assert.deepStrictEqual((yield* get("/dlq/messages")).body.items, [])
      const back = yield* post("/dlq/messages/unarchive", { ids: [...letters, "absent"] })
      assert.deepStrictEqual([back.body.changed, back.body.refused.length], [3, 1])
      assert.lengthOf((yield* get("/dlq/messages")).body.items, 3)
      for (const [wrong, field] of [
        [{ ids: letters }, "reason"],
        [{ reason: "x" }, "ids"],
        [{ ids: letters, reason: "x", force: true }, "force"],
        [{ filter: {}, reason: "x" }, "filter"],
        [{ filter: { state: "archived" }, reason: "x" }, "filter.state"],
        [[], ""]
      ] as const) {
        const refused = yield* post(archive, wrong)
        assert.deepStrictEqual([refused.status, refused.body.detail[0].loc], [422, ["body", field]])
      }
      const unknown = yield* post("/dlq/messages/unarchive", { ids: letters, reason: "x" })
      assert.deepStrictEqual([unknown.status, unknown.body.detail[0].loc], [422, ["body", "reason"]])
    })
  )

  const steps = ({ body }: { readonly body: { readonly steps: ReadonlyArray<Record<string, unknown>> } }) =>
    body.steps.map(({ failed_again, handled, open, replayed, size, verdict }) =>
      [size, verdict, replayed, handled, failed_again, open].join(" ")
    )

  live("a staged replay begins a step when the letters of the step before were handled", () =>
    Effect.gen(function* () {
      const { fail, get, handled, mends, post } = yield* world
      const ids = yield* Effect.forEach(["t1", "t2", "t3", "t4", "hang", "t6"], (task) =>
        fail(task, "RangeError", { hang: task === "hang" })
      )
      const tasks = ["t1", "t2", "t3", "t4", "hang", "t6"]
      for (const task of tasks) mends.add(task)
      const plan = { steps: [1, 3, 1, "rest"], wait_seconds: 1 }
      const { body: job, status } = yield* post("/dlq/replays", { ids, plan })
      assert.deepStrictEqual([status, job.state, job.plan.stop_after], [202, "running", 3])
      const { body } = yield* eventually(get(`/dlq/replays/${job.replay_id}`), ({ body }) => body.state === "finished")
      assert.deepStrictEqual(steps({ body }), [
        "1 handled 1 1 0 0",
        "3 handled 3 3 0 0",
        "1 open 1 0 0 1",
        "1 handled 1 1 0 0"
      ])
      assert.strictEqual(handled[0], "t1")
      assert.sameMembers(handled.slice(1, 4), ["t2", "t3", "t4"])
      const [began, published] = ["began_at", "published_at"].map((name) =>
        body.steps.map((step: Record<string, string>) => Date.parse(step[name] ?? ""))
      )
      // The third step is over after a second, because nobody knows what becomes of its task.
      assert.isAtLeast(began[3], published[2] + 1_000)
      assert.deepInclude(body, { replayed: 6, remaining: 0 })
      for (const [wrong, field] of [
        [[], "plan"],
        [{ steps: [0] }, "plan.steps"],
        [{ steps: "1,10" }, "plan.steps"],
        [{ steps: ["rest", 1] }, "plan.steps"],
        [{ rate: 0 }, "plan.rate"],
        [{ stop_after: 0.5 }, "plan.stop_after"],
        [{ wait_seconds: null }, "plan.wait_seconds"],
        [{ begin_at: "2026-01-31" }, "plan.begin_at"],
        [{ begin_at: null }, "plan.begin_at"],
        [{ begin_at: "2026-02-30T04:00:00Z" }, "plan.begin_at"],
        [{ begin_at: new Date(Date.now() + 31 * 86_400_000).toISOString() }, "plan.begin_at"],
        [{ speed: 1 }, "plan.speed"]
      ] as const) {
        const { body, status } = yield* post("/dlq/replays", { ids, plan: wrong })
        assert.deepStrictEqual([status, body.detail[0].loc], [422, ["body", field]])
      }
    })
  )

  live("a staged replay begins at its time; before, it can be cancelled", () =>
    Effect.gen(function* () {
      const { fail, get, handled, mends, post } = yield* world
      const ids = yield* Effect.forEach(["t1", "t2"], (task) => fail(task))
      for (const task of ["t1", "t2"]) mends.add(task)
      const later = (ms: number) => new Date(Date.now() + ms).toISOString()
      const { body: never } = yield* post("/dlq/replays", { ids, plan: { begin_at: later(29 * 86_400_000) } })
      // Workers of earlier releases look for jobs in these two, and would begin at once.
      const redis = yield* Redis
      for (const list of ["running", "staged"])
        assert.isNull(
          yield* redis.command("ZSCORE", `${RedisDLQStore.baseOf(redis)}replays:${list}`, never.replay_id),
          list
        )
      const begin_at = later(1_500)
      const { body: job } = yield* post("/dlq/replays", { ids: ids.slice(0, 1), plan: { begin_at } })
      assert.deepStrictEqual([job.state, steps({ body: job })], ["running", ["1 not_begun 0 0 0 0"]])
      assert.strictEqual(job.plan.begin_at, begin_at)
      const { body } = yield* eventually(get(`/dlq/replays/${job.replay_id}`), ({ body }) => body.state === "finished")
      assert.deepStrictEqual([handled, steps({ body })], [["t1"], ["1 handled 1 1 0 0"]])
      assert.strictEqual(body.steps[0].began_at, begin_at)
      assert.isAtLeast(Date.parse(body.steps[0].published_at), Date.parse(begin_at))
      const path = `/dlq/replays/${never.replay_id}`
      assert.deepStrictEqual(steps(yield* get(path)), ["1 not_begun 0 0 0 0", "1 not_begun 0 0 0 0"])
      assert.strictEqual((yield* post(`${path}/cancel`)).body.state, "cancelled")
      assert.strictEqual(yield* redis.command("ZCARD", `${RedisDLQStore.baseOf(redis)}replays:timed`), 0)
    })
  )

  live("a staged replay stops when the same exception comes too often, and goes on when it is resumed", () =>
    Effect.gen(function* () {
      const { fail, get, mends, post, store } = yield* world
      const tasks = Array.from({ length: 8 }, (_, n) => `t${n}`)
      const ids = yield* Effect.forEach(tasks, (task) => fail(task))
      mends.add("t0")
      const { body: job } = yield* post("/dlq/replays", { ids, plan: { steps: [1, 3], stop_after: 3 } })
      const path = `/dlq/replays/${job.replay_id}`
      const paused = yield* eventually(get(path), ({ body }) => body.state === "paused")
      assert.deepInclude(paused.body.paused, { by: "stop_after", reason: "3 failed with RangeError" })
      assert.deepStrictEqual(steps(paused), ["1 handled 1 1 0 0", "3 failed_again 3 0 3 0", "4 not_begun 0 0 0 0"])
      assert.strictEqual((yield* post(`${path}/pause`, { reason: "again" })).status, 409)
      assert.strictEqual((yield* store.list({ state: "dead_lettered" }, { limit: 50 })).items.length, 4 + 3)
      const { body: groups } = yield* get("/dlq/groups")
      assert.deepInclude(groups.groups[0].replays[0], { replay_id: job.replay_id, replayed: 4, failed_again: 3 })
      for (const task of tasks) mends.add(task)
      // Whoever has seen this pause does not have to resume the same step once more because all of it has failed.
      assert.strictEqual((yield* post(`${path}/resume`)).body.state, "running")
      const over = yield* eventually(get(path), ({ body }) => body.state !== "running")
      assert.deepStrictEqual([over.body.state, steps(over)[2]], ["finished", "4 handled 4 4 0 0"])
      assert.strictEqual((yield* post(`${path}/resume`)).status, 409)
    })
  )

  live("a staged replay pauses after each step of which every letter failed, but not after the last one", () =>
    Effect.gen(function* () {
      const { fail, get, mends, post } = yield* world
      const ids = yield* Effect.forEach(["t0", "t1", "t2", "t3", "t4", "t5"], (task) => fail(task))
      yield* post(`/dlq/messages/${ids[2]}/archive`, { reason: "a test order" })
      mends.add("t3")
      const plan = { steps: [1, 2, 2], stop_after: null }
      const { body: job } = yield* post("/dlq/replays", { ids, plan })
      const path = `/dlq/replays/${job.replay_id}`
      const isPausedAt = (step: number) =>
        eventually(get(path), ({ body }) => body.state === "paused" && body.steps[step - 1].verdict !== "not_begun")
      const first = yield* isPausedAt(1)
      assert.deepInclude(first.body.paused, { by: "failed_step", reason: "Every letter of step 1 failed" })
      assert.deepStrictEqual(steps(first).slice(0, 2), ["1 failed_again 1 0 1 0", "2 not_begun 0 0 0 0"])
      yield* post(`${path}/resume`)
      const second = yield* isPausedAt(2)
      const reason = "Every letter of step 2 that was not skipped failed"
      assert.deepInclude(second.body.paused, { by: "failed_step", reason })
      yield* post(`${path}/resume`)
      // One letter of the third step is handled, and nothing follows the last one.
      const over = yield* eventually(get(path), ({ body }) => body.state !== "running")
      assert.strictEqual(over.body.state, "finished")
      assert.deepStrictEqual(steps(over), [
        "1 failed_again 1 0 1 0",
        "2 failed_again 1 0 1 0",
        "2 failed_again 2 1 1 0",
        "1 failed_again 1 0 1 0"
      ])
    })
  )

  live("a staged replay keeps its rate, and can be paused, resumed and cancelled", () =>
    Effect.gen(function* () {
      const { fail, get, handled, mends, post } = yield* world
      const tasks = Array.from({ length: 8 }, (_, n) => `t${n}`)
      const ids = yield* Effect.forEach(tasks, (task) => fail(task), { concurrency: 4 })
      for (const task of tasks) mends.add(task)
      const { body: job } = yield* post("/dlq/replays", { ids, plan: { steps: [], rate: 4 } })
      const path = `/dlq/replays/${job.replay_id}`
      yield* eventually(get(path), ({ body }) => body.replayed >= 2)
      const paused = yield* post(`${path}/pause`, { reason: "lunch", by: "ada" })
      assert.deepInclude(paused.body, { state: "paused" })
      assert.deepInclude(paused.body.paused, { reason: "lunch", by: "ada" })
      // A batch that had begun is counted within half a second.
      yield* Effect.sleep("700 millis")
      const { replayed } = (yield* get(path)).body
      assert.isAtMost(replayed, 6)
      yield* Effect.sleep("700 millis")
      assert.strictEqual((yield* get(path)).body.replayed, replayed)
      yield* post(`${path}/resume`)
      yield* eventually(get(path), ({ body }) => body.replayed > replayed)
      assert.strictEqual((yield* post(`${path}/cancel`)).body.state, "cancelled")
      yield* Effect.sleep("700 millis")
      assert.isBelow(handled.length, 8)
      assert.strictEqual((yield* post(`${path}/pause`, { reason: "x" })).status, 409)
      const plain = yield* post("/dlq/replays", { ids: ["none"] })
      const refused = yield* post(`/dlq/replays/${plain.body.replay_id}/pause`, { reason: "x" })
      assert.strictEqual(refused.status, 409)
      assert.strictEqual((yield* post("/dlq/replays/none/resume")).status, 404)
    })
  )
})

describe.each(variants)("dead letters of an earlier release, $name", ({ doors, skip }) => {
  it.live.skipIf(skip)("are grouped and followed, and its cancel ends a staged replay", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const jobs = yield* ReplayJobs
      const redis = yield* Redis
      const outcomes = yield* ReplayOutcomes.ReplayOutcomes
      const source = yield* queue("source")
      const keyOf = (name: string) => RedisDLQStore.baseOf(redis) + name
      /** An earlier release stores neither where an exception was thrown nor which replay a letter comes from. */
      const recordEarlier = Effect.fnUntraced(function* (letter: DeadLetterRecord, headers = letter.headers) {
        yield* store.record(letter)
        const key = keyOf(`record:${letter.dlq_id}`)
        yield* redis.command("HDEL", key, "stack_line")
        yield* redis.command("DEL", keyOf(`history:${JSON.stringify(["tasks.dlq", "handler_error", "RangeError"])}`))
        const content = JSON.parse(String(yield* redis.command("HGET", key, "content")))
        yield* redis.command("HSET", key, "content", JSON.stringify({ ...content, headers }))
      })
      const exception_stack = "RangeError: x\n    at order (shop.ts:1:2)"
      yield* recordEarlier(deadLetter(1, { source_queue_name: source, exception_stack }))
      const { items } = yield* store.groups({ limit: 10 })
      assert.deepInclude(items[0], {
        stack_line: "at order (shop.ts:1:2)",
        first_seen_at: "2026-11-20T12:00:00.000000+00:00",
        replays: []
      })
      const { replayed_at } = yield* replay("id-1")
      const headers = { "x-svc-dlq-id": "id-1", "x-svc-replayed-at": replayed_at }
      yield* recordEarlier(deadLetter("again", { task_id: "task-1" }), headers)
      yield* outcomes.look("id-1")
      assert.deepInclude((yield* store.get("id-1"))?.replay_outcome, {
        outcome: "failed_again",
        failed_again_as: "id-again"
      })
      const plan = { steps: [1], rate: null, stop_after: null, wait_seconds: 1 }
      const { job } = yield* jobs.create({ selection: { ids: ["id-1"] }, force: false, plan })
      assert.deepStrictEqual(yield* jobs.running, [])
      yield* redis.command("HSET", keyOf(`replay:${job.replay_id}`), "state", "cancelled")
      assert.isFalse(yield* jobs.take(job.replay_id, "worker", 1_000))
      assert.deepStrictEqual(yield* jobs.staged, [])
    }).pipe(
      Effect.scoped,
      Effect.provide(
        ReplayOutcomes.layer({ lookEvery: "1 hour" }).pipe(Layer.provideMerge(stores()), Layer.provideMerge(doors))
      )
    )
  )
})

describe("repairs of dead letters", () => {
  it.live("are for bearers of the token alone", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      yield* store.record(deadLetter(1))
      const around = BearerToken.layer(Option.some(Redacted.make("the-token")))
      const { call } = yield* start({}, { around, worker: null })
      const bodies: Readonly<Record<string, unknown>> = {
        "/dlq/messages/id-1/edits": { payload: {} },
        "/dlq/messages/id-1/archive": { reason: "x" },
        "/dlq/messages/id-1/unarchive": undefined,
        "/dlq/messages/archive": { ids: ["id-1"], reason: "x" },
        "/dlq/messages/unarchive": { ids: ["id-1"] },
        "/dlq/messages/id-1/replay": undefined,
        "/dlq/replays": { ids: ["id-1"], plan: {} },
        "/dlq/replays/x/pause": { reason: "x" },
        "/dlq/replays/x/resume": undefined,
        "/dlq/replays/x/cancel": undefined
      }
      for (const [path, body] of Object.entries(bodies)) {
        for (const headers of [{}, { authorization: "Bearer another" }]) {
          assert.strictEqual((yield* call("POST", path, body, headers)).status, 401, path)
        }
      }
      assert.deepInclude(yield* store.get("id-1"), { state: "dead_lettered", replay_count: 0 })
      const headers = { authorization: "Bearer the-token" }
      assert.strictEqual((yield* call("POST", "/dlq/messages/id-1/archive", { reason: "x" }, headers)).status, 200)
      for (const [method, path] of [
        ["GET", "/dlq/messages/id-1/edits"],
        ["PATCH", "/dlq/messages/id-1/archive"],
        ["DELETE", "/dlq/messages/id-1/unarchive"],
        ["GET", "/dlq/messages/archive"],
        ["PUT", "/dlq/replays/x/pause"]
      ] as const) {
        assert.strictEqual((yield* call(method, path, undefined, headers)).status, 405, path)
      }
    }).pipe(
      Effect.scoped,
      Effect.provide(Layer.provideMerge(ArchiveSweeper.layer(), stores()).pipe(Layer.provideMerge(inMemory)))
    )
  )

  it.live("say what was archived before Redis failed, and the same request goes on with the rest", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const ids = Array.from({ length: 130 }, (_, n) => `id-${n}`)
      for (const n of ids.keys()) yield* store.record(deadLetter(n))
      let isAway = true
      const failing = DeadLetterStore.of({
        ...store,
        archive: (id, why) =>
          isAway && id === "id-100"
            ? Effect.fail(new RedisError({ operation: "command", retryable: true, cause: new Error("the test") }))
            : store.archive(id, why)
      })
      const { post } = yield* start({}, { worker: null }).pipe(Effect.provideService(DeadLetterStore, failing))
      const { body, status } = yield* post("/dlq/messages/archive", { ids, reason: "x" })
      assert.deepStrictEqual([status, body.changed, body.refused], [200, 127, []])
      assert.match(body.problem, /unavailable.*again/)
      const nothing = yield* post("/dlq/messages/archive", { ids: ["id-100"], reason: "x" })
      assert.strictEqual(nothing.status, 503)
      isAway = false
      const rest = yield* post("/dlq/messages/archive", { ids, reason: "x" })
      assert.deepStrictEqual([rest.body.changed, rest.body.refused.length, rest.body.problem], [3, 127, null])
    }).pipe(
      Effect.scoped,
      Effect.provide(Layer.provideMerge(ArchiveSweeper.layer(), stores()).pipe(Layer.provideMerge(inMemory)))
    )
  )

  it.effect("are deleted 30 days after they were archived, and not before their messages have left the queue", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      for (const n of [1, 2, 3])
        yield* store.record(deadLetter(n, { queue_name: n === 3 ? "others.dlq" : "tasks.dlq" }))
      for (const n of [1, 2, 3]) yield* store.archive(`id-${n}`, { reason: "x", by: null })
      yield* store.archivedCopies.settle("tasks.dlq", {
        removed: ["id-1", "id-2"],
        missed: [],
        retryInMs: 1,
        restMs: 0
      })
      yield* TestClock.adjust("29 days")
      yield* store.sweepArchive
      assert.deepStrictEqual(yield* store.unarchive("id-2"), { _tag: "Done" })
      yield* TestClock.adjust("2 days")
      yield* store.sweepArchive
      assert.deepStrictEqual(yield* store.unarchive("id-1"), { _tag: "Absent" })
      const { archived, records } = yield* store.totals
      assert.deepStrictEqual([records, archived], [1, 1])
      yield* store.archivedCopies.settle("others.dlq", { removed: ["id-3"], missed: [], retryInMs: 1, restMs: 0 })
      yield* TestClock.adjust("2 hours")
      yield* store.sweepArchive
      assert.deepStrictEqual((yield* store.totals).archived, 0)
    }).pipe(Effect.provide(stores().pipe(Layer.provideMerge(inMemory))))
  )

  it.effect("are bounded together with the archive: archived letters make room first", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      for (const n of [1, 2, 3]) yield* store.record(deadLetter(n))
      const ids = (state?: "archived") =>
        Effect.map(store.list(state === undefined ? {} : { state }, { limit: 10 }), ({ items }) =>
          items.map(({ dlq_id }) => dlq_id)
        )
      for (const n of [2, 3]) yield* store.archive(`id-${n}`, { reason: "x", by: null })
      const settled = { missed: [], retryInMs: 0, restMs: 0 }
      yield* store.archivedCopies.settle("tasks.dlq", { ...settled, removed: ["id-3"] })
      yield* store.record(deadLetter(4))
      assert.deepStrictEqual([yield* ids(), yield* ids("archived")], [["id-4", "id-1"], ["id-2"]])
      // The message of the archived letter may be in its queue, so that the oldest of the others makes room.
      yield* store.record(deadLetter(5))
      assert.deepStrictEqual([yield* ids(), yield* ids("archived")], [["id-5", "id-4"], ["id-2"]])
      for (const n of [4, 5]) yield* store.archive(`id-${n}`, { reason: "x", by: null })
      yield* store.record(deadLetter(6))
      assert.deepStrictEqual([yield* ids(), yield* ids("archived")], [["id-6"], ["id-5", "id-4"]])
    }).pipe(Effect.provide(stores({ max_records: 3 }).pipe(Layer.provideMerge(inMemory))))
  )
})
