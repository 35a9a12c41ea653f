import { randomUUID } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import { Redis, type RedisError, type Reply } from "../../../src/services/Redis.ts"
import {
  type Claim,
  type DeadLetterFilter,
  DeadLetterStore,
  type PageOptions,
  type ReplaySettlement,
  type UnknownCursor
} from "../../../src/status/dead-letters/DeadLetterStore.ts"
import * as RedisDLQStore from "../../../src/status/dead-letters/RedisDLQStore.ts"
import * as Jobs from "../../../src/status/replay/ReplayJobs.ts"
import { ReplayJobs } from "../../../src/status/replay/ReplayJobs.ts"
import * as RealTime from "../../RealTime.ts"
import * as TemporaryPrefix from "../../TemporaryPrefix.ts"
import { deadLetter } from "../DeadLetters.ts"

describe.skipIf(TemporaryPrefix.server === null)("dead letters: the scripts' Lua and their TypeScript", () => {
  it.effect(
    "answer the same to any sequence of records, pages, claims, replays, jobs and passing time, and leave the same keys",
    () =>
      Effect.gen(function* () {
        const [lua, typescript] = [
          yield* door(TemporaryPrefix.layer),
          yield* door(RedisMemory.layer({ prefix: "svc-test:" }))
        ]
        const promise = Effect.runPromiseWith(yield* Effect.context<never>())
        const same = fc.asyncProperty(
          settings,
          fc.array(action, { minLength: 1, maxLength: 40 }),
          async (settings, actions) => {
            const options = { ...settings, prefix: randomUUID() }
            const played = (redis: Redis["Service"]) =>
              Effect.andThen(TestClock.setTime(1_000_000), play(redis, options, actions))
            assert.deepStrictEqual(await promise(played(typescript)), await promise(played(lua)))
          }
        )
        yield* Effect.promise(() => fc.assert(same, { numRuns: 150 }))
      }).pipe(Effect.scoped)
  )
})

/** The store goes by the test's clock. Both Redis go by real time, so that nothing expires on one of them alone. */
const door = <E>(layer: Layer.Layer<Redis, E>) =>
  Effect.map(Layer.build(RealTime.layer(layer)), (context): Redis["Service"] => {
    const redis = Context.get(context, Redis)
    return {
      ...redis,
      command: (name, ...args) => RealTime.effect(redis.command(name, ...args)),
      run: (script, keys, args) => RealTime.effect(redis.run(script, keys, args))
    }
  })

const small = <A>(values: ReadonlyArray<A>) => fc.constantFrom(...values)
const id = fc.nat(5)
const queue = small(["a.dlq", "b.dlq"])
const reason = small(["handler_error", "invalid_envelope"])
const exception = small([null, "RangeError", ""])
const state = small(["dead_lettered", "replay_unknown", "replayed"] as const)
const token = small(["t1", "t2", "t3"])
const batch = { id: small(["1", "2"]), position: small([0, 1]), step: small([1, 2]) }
const job = fc.option(fc.record(batch), { nil: undefined, freq: 2 })

const settings = fc.record({
  max_records: small([3, 100]),
  max_bytes: small([1_500, 1_000_000]),
  ttl_seconds: small([null, 60])
})

const filter = fc.record(
  {
    queue_name: queue,
    task_id: small(["task-1", "task-2"]),
    reason,
    exception_type: exception,
    source_queue_name: small(["tasks", "others"]),
    state
  },
  { requiredKeys: [] }
)

const settlement: fc.Arbitrary<ReplaySettlement> = fc.oneof(
  small([{ _tag: "released" }, { _tag: "reverted" }, { _tag: "unknown" }] as const),
  fc.constant({ _tag: "replayed", at: "2026-11-20T12:30:00+00:00", queue: "tasks" } as const)
)

const follow = {
  id: fc.nat(6),
  outcome: small([
    { _tag: "handled" },
    { _tag: "failed_again", kind: "RangeError", as: null },
    { _tag: "failed_again", kind: "TypeError", as: "id-2" }
  ] as const)
}

/** When the replay of a letter was that a settlement tells of; or another one. */
const replayedAt = small(["2026-11-20T12:30:00+00:00", "2026-11-20T12:31:00+00:00"])

const planOf = (stop_after: number | null) => ({ steps: [1, 1], rate: null, stop_after, wait_seconds: 20 })

const action = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      _tag: fc.constant("Record" as const),
      id,
      queue,
      reason,
      exception,
      at: small(["2026-11-20T12:00:00+00:00", "2026-11-20T12:00:00.500000+00:00", "2026-11-21T00:00:00+00:00"]),
      size: fc.nat(600),
      origin: fc.option(fc.record({ id, at: replayedAt }), { nil: undefined })
    })
  },
  {
    weight: 3,
    arbitrary: fc.oneof(
      fc.record({ _tag: fc.constant("Replace" as const), id, by: small([6, 7]) }),
      fc.record({ _tag: fc.constant("Archive" as const), id: fc.nat(7), by: small([null, "ada"]) }),
      fc.record({ _tag: fc.constant("Unarchive" as const), id: fc.nat(7) }),
      fc.record({ _tag: fc.constant("Sweep" as const), days: small([0, 31]) }),
      fc.record({ _tag: fc.constant("Copies" as const), found: fc.boolean(), isTruncated: fc.boolean() }),
      fc.record({ _tag: fc.constant("Follow" as const), one: fc.boolean(), ...follow, at: replayedAt })
    )
  },
  fc.record({
    _tag: fc.constant("List" as const),
    filter,
    limit: fc.integer({ min: 1, max: 4 }),
    excludeClaimed: fc.boolean()
  }),
  fc.record({ _tag: fc.constant("Look" as const), limit: fc.integer({ min: 1, max: 3 }) }),
  {
    weight: 2,
    arbitrary: fc.record({
      _tag: fc.constant("Claim" as const),
      id,
      token,
      job,
      force: fc.boolean(),
      state: fc.option(state, { nil: undefined })
    })
  },
  { weight: 2, arbitrary: fc.record({ _tag: fc.constant("Begin" as const), id, token, job }) },
  { weight: 2, arbitrary: fc.record({ _tag: fc.constant("Settle" as const), id, token, job, settlement }) },
  fc.record({ _tag: fc.constant("Wait" as const), ms: small([1_000, 31_000, 40_000]) }),
  fc.record({
    _tag: fc.constant("Job" as const),
    filter,
    key: small(["", "k1", "k2"]),
    force: fc.boolean(),
    plan: small([undefined, planOf(1), planOf(null)])
  }),
  fc.record({ _tag: fc.constant("Pause" as const), job: fc.nat(3), isPaused: fc.boolean() }),
  fc.record({
    _tag: fc.constant("Work" as const),
    job: fc.nat(3),
    worker: small(["w1", "w2"]),
    counts: fc.tuple(fc.nat(1), fc.nat(1), fc.nat(1), fc.nat(1)),
    isInterrupted: fc.boolean()
  }),
  fc.record({ _tag: fc.constant("Cancel" as const), job: fc.nat(3) }),
  fc.record({ _tag: fc.constant("Advance" as const), ...batch, interrupted: small([undefined, ["id-1", "id-0"]]) })
)

type Action = typeof action extends fc.Arbitrary<infer A> ? A : never

const claimOf = ({ force = false, id, job, state, token }: Omit<Claim, "dlqId" | "force"> & Numbered) => ({
  dlqId: `id-${id}`,
  token,
  job,
  force,
  state
})

interface Numbered {
  readonly id: number
  readonly force?: boolean
}

/** Everything that was answered, and at the end every key. Job ids are random: they are told by their order. */
const play = Effect.fnUntraced(function* (
  redis: Redis["Service"],
  options: RedisDLQStore.Options & { readonly prefix: string },
  actions: ReadonlyArray<Action>
) {
  const jobIds: Array<string> = []
  const said: Array<unknown> = []
  const context = yield* Layer.build(
    Layer.provideMerge(
      Jobs.layer({ prefix: options.prefix, maxJobs: 2, maxRunning: 2 }),
      RedisDLQStore.layer(options)
    ).pipe(Layer.provide([Layer.succeed(Redis, redis), yield* withoutTimers]))
  )
  const store = Context.get(context, DeadLetterStore)
  // what it does first in the background is done by then
  yield* store.totals
  const jobs = Context.get(context, ReplayJobs)
  // those that claims are for; their ids are not random, as records name them
  for (const id of ["1", "2"]) {
    const job = { state: "running", worker: "w1", position: 0, total: 9, stop_after: 2 }
    yield* redis.command(
      "HSET",
      `${RedisDLQStore.baseOf(redis, options.prefix)}replay:${id}`,
      ...Object.entries(job).flat()
    )
    const ids = Array.from({ length: 9 }, (_, n) => `id-${n}`)
    yield* redis.command("RPUSH", `${RedisDLQStore.baseOf(redis, options.prefix)}replay:${id}:ids`, ...ids)
  }
  const step = (action: Action): Effect.Effect<unknown, RedisError | UnknownCursor | Jobs.ReplayJobRefused> => {
    switch (action._tag) {
      case "Record":
        return store.record(
          deadLetter(action.id, {
            queue_name: action.queue,
            reason: action.reason,
            exception_type: action.exception,
            dead_lettered_at: action.at,
            raw_body_b64: Buffer.alloc(action.size).toString("base64"),
            exception_stack: `Error\n    at line ${action.size}`,
            ...(action.origin !== undefined && {
              headers: { "x-svc-dlq-id": `id-${action.origin.id}`, "x-svc-replayed-at": action.origin.at }
            })
          })
        )
      case "Replace":
        return store.replace(`id-${action.id}`, deadLetter(action.by, { edited_from: `id-${action.id}` }))
      case "Archive":
        return store.archive(`id-${action.id}`, { reason: "why", by: action.by })
      case "Unarchive":
        return store.unarchive(`id-${action.id}`)
      case "Sweep":
        return Effect.andThen(TestClock.adjust(`${action.days} days`), store.sweepArchive)
      case "Copies":
        return Effect.gen(function* () {
          const queue = yield* store.archivedCopies.take(1_000)
          if (queue === undefined) return queue
          const ids = yield* store.archivedCopies.of(queue)
          const [removed, left] = action.found ? [ids.slice(0, 1), ids.slice(1)] : [[], ids]
          const missed = action.isTruncated ? [] : left
          yield* store.archivedCopies.settle(queue, { removed, missed, retryInMs: 500, restMs: 900 })
          return [queue, ids]
        })
      case "Follow": {
        const id = `id-${action.id}`
        const followed = { id, taskId: null, replayedAt: action.at, later: [] }
        return Effect.all([
          store.follow(action.one ? { id } : { limit: 3 }),
          store.noteOutcome(followed, action.outcome),
          store.get(id)
        ])
      }
      case "List":
        return everything(store, action.filter, action)
      case "Look":
        return Effect.all([store.queues, store.groups({ limit: action.limit }), store.totals, store.get("id-1")])
      case "Claim":
        return store.claim(claimOf(action))
      case "Begin":
        return store.begin(claimOf(action))
      case "Settle":
        return store.settle(claimOf(action), action.settlement)
      case "Wait":
        return TestClock.adjust(action.ms)
      case "Job":
        return Effect.map(
          jobs.create({
            selection: { filter: action.filter },
            force: action.force,
            plan: action.plan,
            ...(action.key !== "" && { idempotencyKey: action.key })
          }),
          ({ existing, job: { replay_id, ...job } }) => {
            if (!existing) jobIds.push(replay_id)
            return { existing, job, index: jobIds.indexOf(replay_id) }
          }
        )
      case "Work": {
        const job = jobIds[action.job] ?? "none"
        const [replayed, skipped, failed, unknown] = action.counts
        const problems = [{ dlq_id: "x", outcome: "failed", detail: "d" }] as const
        return Effect.gen(function* () {
          const taken = yield* jobs.take(job, action.worker, 15_000)
          const { ids, position } = yield* jobs.next(job, 2)
          const interrupted = action.isInterrupted ? ids.toReversed() : []
          const progress = { replayed, skipped, failed, unknown, problems, interrupted }
          const went = yield* jobs.advance(job, action.worker, position, progress)
          const next = yield* jobs.nextStep(job, action.worker)
          const { replay_id: _, ...view } = { replay_id: "", ...(yield* jobs.get(job)) }
          return [taken, ids, position, went, next, view, yield* jobs.problems(job)]
        })
      }
      case "Pause": {
        const job = jobIds[action.job] ?? "none"
        return action.isPaused ? jobs.pause(job, { reason: "why", by: null }) : jobs.resume(job)
      }
      case "Advance": {
        const { interrupted } = action
        const progress = { replayed: 1, skipped: 0, failed: 0, unknown: 0, problems: [], interrupted }
        return jobs.advance(action.id, "w1", action.position, progress)
      }
      case "Cancel":
        return Effect.map(jobs.cancel(jobIds[action.job] ?? "none"), (job) => job && { ...job, replay_id: "" })
    }
  }
  for (const action of actions) {
    said.push(yield* Effect.catchTag(step(action), "ReplayJobRefused", ({ reason }) => Effect.succeed(reason)))
  }
  said.push(yield* dump(redis, options.prefix))
  return said
}, Effect.scoped)

/**
 * The test's clock, on which nobody is woken. What the store does in the background once a minute would meet the test's
 * own commands at another place on a server than in memory; `Look` does the same.
 */
const withoutTimers = Effect.map(Clock.Clock, (clock) =>
  Layer.succeed(Clock.Clock, { ...clock, sleep: () => Effect.never })
)

const everything = Effect.fnUntraced(function* (
  store: DeadLetterStore["Service"],
  filter: DeadLetterFilter,
  asked: Pick<PageOptions, "limit" | "excludeClaimed">
) {
  const pages: Array<unknown> = []
  let cursor: string | null | undefined
  while (cursor !== null) {
    const page = yield* store.list(filter, { ...asked, ...(cursor !== undefined && { cursor }) })
    pages.push(page)
    cursor = page.next_cursor
  }
  return pages
})

/** Every key of the records and of the indexes that these values can be in. */
const dump = Effect.fnUntraced(function* (redis: Redis["Service"], prefix: string) {
  const base = RedisDLQStore.baseOf(redis, prefix)
  const queues = ["a.dlq", "b.dlq"]
  const states = ["dead_lettered", "replay_unknown", "replayed", "replaced", "archived"]
  const reasons = ["handler_error", "invalid_envelope"]
  const exceptions = [null, "RangeError", ""]
  const groups = queues.flatMap((queue) =>
    reasons.flatMap((reason) => exceptions.map((exception) => JSON.stringify([queue, reason, exception])))
  )
  const sorted = [
    "by:all",
    "queues",
    "groups",
    "archive",
    "copies",
    "copies-rest",
    "following",
    "copies:a.dlq",
    "copies:b.dlq",
    "copies:tasks.dlq",
    ...queues.map((queue) => `by:queue_name:${queue}`),
    ...states.flatMap((state) => [`by:state:${state}`, ...queues.map((queue) => `by:queue_state:${state}:${queue}`)]),
    ...reasons.map((reason) => `by:reason:${reason}`),
    "by:exception_type",
    "by:exception_type:RangeError",
    "by:exception_type:",
    "by:source_queue_name:tasks",
    ...Array.from({ length: 6 }, (_, n) => `by:task_id:task-${n}`),
    ...groups.map((group) => `by:group:${group}`)
  ]
  const begun = ["1", "2"].map((job) => `replay:${job}:begun`)
  const failures = ["1", "2"].flatMap((job) => [`replay:${job}`, `replay:${job}:failures`])
  const records = Array.from({ length: 8 }, (_, n) => `record:id-${n}`)
  const hashes = ["stats", ...begun, ...failures, ...groups.map((group) => `history:${group}`), ...records]
  const pairs = (reply: Reply) =>
    Array.isArray(reply)
      ? Object.fromEntries(reply.flatMap((item, i) => (i % 2 === 0 ? [[String(item), reply[i + 1]]] : [])))
      : reply
  return {
    sorted: yield* Effect.forEach(sorted, (name) =>
      Effect.map(redis.command("ZRANGEBYSCORE", base + name, "-inf", "+inf", "WITHSCORES"), (reply) => [name, reply])
    ),
    lists: yield* Effect.forEach(["1", "2"], (job) => redis.command("LRANGE", `${base}replay:${job}:ids`, 0, -1)),
    hashes: yield* Effect.forEach(hashes, (name) =>
      Effect.map(redis.command("HGETALL", base + name), (reply) => [name, pairs(reply)])
    )
  }
})
