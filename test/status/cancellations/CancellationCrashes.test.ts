import { randomUUID } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import { Redis } from "../../../src/services/Redis.ts"
import { Cancellations, type TaskOutcome } from "../../../src/status/cancellations/Cancellations.ts"
import { work } from "../../../src/status/cancellations/CancellationWorker.ts"
import { TaskCancellation } from "../../../src/status/queues/TaskCancellation.ts"
import * as RedisTaskIndex from "../../../src/status/tasks/RedisTaskIndex.ts"
import * as RealTime from "../../RealTime.ts"
import * as TemporaryPrefix from "../../TemporaryPrefix.ts"
import { answer, inMemory, numbered, services, tasks } from "./CancelledTasks.ts"

/** A process is gone with an operation on Redis: before it is done, or before its answer is heard. */
type Fate = "lives" | "before" | "after"

const gone = Effect.die(new Error("the process is gone"))

/** Redis as a process sees it that dies at some operation. */
const mortal = (fateOf: () => Fate) => {
  const process = { isGone: false }
  const through = <A, E>(done: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.suspend(() => {
      const fate = process.isGone ? "before" : fateOf()
      if (fate !== "lives") process.isGone = true
      if (fate === "before") return gone
      return fate === "after" ? Effect.andThen(Effect.exit(done), gone) : done
    })
  const door = Layer.effect(
    Redis,
    Effect.map(Redis, (redis) =>
      Redis.of({
        ...redis,
        command: (name, ...args) => through(redis.command(name, ...args)),
        run: (script, keys, args) => through(redis.run(script, keys, args))
      })
    )
  )
  return { process, door }
}

const leaseSeconds = 30
const settings = { window: 4, perSecond: Number.POSITIVE_INFINITY, leaseSeconds, followSeconds: 0 }

const ids = numbered(1, 10)
const ended = ["t-00003", "t-00007"]

/**
 * A job of ten tasks, worked on by one process after the other until it is over. Between two of them the workers of
 * tasks answer what they find: some tasks are cancelled, and some end before they can be.
 */
const play = Effect.fnUntraced(function* (fateOf: () => Fate) {
  yield* tasks(ids)
  yield* tasks(ended, { isTerminal: true })
  const cancellation = yield* TaskCancellation
  const id = yield* Effect.gen(function* () {
    const request = { selection: { taskIds: ids }, reason: "a wrong campaign", by: "ada" }
    return (yield* (yield* Cancellations).create(request)).job.cancellation_id
  })
  const made = new Map<string, string>()
  const answered = { cancelled: new Set<string>(), ended: new Set<string>() }
  let crashes = 0
  for (let isOver = false; !isOver; ) {
    const { door, process } = mortal(fateOf)
    const exit = yield* work(id, `process ${crashes}`, settings).pipe(
      Effect.provide(
        Layer.fresh(services()).pipe(Layer.provideMerge(RedisTaskIndex.layer()), Layer.provideMerge(door))
      ),
      Effect.exit
    )
    isOver = !process.isGone
    if (isOver) yield* exit
    else assert.isTrue(Exit.isFailure(exit))
    crashes += isOver ? 0 : 1
    for (const request of yield* cancellation.requestsOf(ids)) {
      if (Option.isNone(request)) continue
      const { cancel_id, state, task_id } = request.value
      assert.strictEqual(made.get(task_id) ?? cancel_id, cancel_id, `${task_id} has one request`)
      made.set(task_id, cancel_id)
      if (isOver || state !== "requested") continue
      const number = Number(task_id.slice(-1))
      if (number % 3 === 0) continue
      const how = number % 3 === 1 ? ("cancelled" as const) : ("ended" as const)
      answered[how].add(task_id)
      yield* answer(task_id, how)
      // the status of a cancelled task may be stored before the job hears of it
      if (number === 4) yield* tasks([task_id], { isTerminal: true, status: "cancelled" })
    }
    yield* TestClock.adjust(`${leaseSeconds} seconds`)
  }
  const job = yield* (yield* Cancellations).get(id)
  assert.deepStrictEqual(
    [job?.state, job?.total, job?.cancelled, job?.ended, job?.requested, job?.failed, job?.remaining],
    [
      "finished",
      10,
      answered.cancelled.size,
      ended.length + answered.ended.size,
      10 - ended.length - answered.cancelled.size - answered.ended.size,
      0,
      0
    ]
  )
  assert.deepStrictEqual(
    [...made.keys()].toSorted(),
    ids.filter((one) => !ended.includes(one))
  )
  return crashes
})

const run = (fateOf: () => Fate, redis: "memory" | "server") => {
  const doors =
    redis === "memory" ? inMemory : Layer.provideMerge(RedisTaskIndex.layer(), RealTime.layer(TemporaryPrefix.layer))
  return play(fateOf).pipe(Effect.provide(services().pipe(Layer.provideMerge(Layer.fresh(doors)))))
}

for (const redis of ["memory", "server"] as const) {
  describe.skipIf(redis === "server" && TemporaryPrefix.server === null)(
    `a process that is gone at each step of a cancellation, Redis ${redis === "memory" ? "in memory" : "on a server"}`,
    () => {
      it.effect(
        "each task is asked for with one request, and each answer is counted once",
        () =>
          Effect.gen(function* () {
            let steps = 0
            const count = (): Fate => {
              steps++
              return "lives"
            }
            assert.strictEqual(yield* run(count, redis), 0)
            assert.isAtLeast(steps, 30)
            for (const fate of ["before", "after"] as const) {
              // a server takes longer, and does the same as the memory, which goes through all steps
              for (let at = 0; at < steps; at += redis === "memory" ? 1 : 7) {
                let step = 0
                assert.strictEqual(yield* run(() => (step++ === at ? fate : "lives"), redis), 1)
              }
            }
          }),
        120_000
      )

      it.effect("also where each process comes only a few steps further", () =>
        Effect.gen(function* () {
          for (const life of [14, 17]) {
            let step = 0
            assert.isAbove(yield* run(() => (++step % life === 0 ? "after" : "lives"), redis), 1)
          }
        })
      )
    }
  )
}

const small = <A>(values: ReadonlyArray<A>) => fc.constantFrom(...values)
const job = fc.nat(2)
const worker = small(["w1", "w2"])
const task = small(["a", "b", "c", "d"])
const outcome = small(["requested", "cancelled", "ended", "failed"] as const)
const outcomes = fc.uniqueArray(fc.record({ taskId: task, outcome }), {
  maxLength: 3,
  selector: ({ taskId }) => taskId
})

const action = fc.oneof(
  fc.record({ _tag: fc.constant("Create" as const), ids: fc.uniqueArray(task), key: small([undefined, "k1"]) }),
  fc.record({
    _tag: fc.constant("Asked" as const),
    job,
    worker,
    outcomes,
    size: fc.nat(3),
    stop: small([undefined, undefined, "full"])
  }),
  fc.record({ _tag: fc.constant("Answered" as const), job, worker, outcomes, isOver: fc.boolean() }),
  fc.record({ _tag: fc.constant("Stop" as const), job }),
  fc.record({ _tag: fc.constant("Withdraw" as const), job }),
  fc.record({ _tag: fc.constant("Wait" as const), ms: small([1_000, 31_000]) })
)
type Action = typeof action extends fc.Arbitrary<infer A> ? A : never

const withProblems = (given: ReadonlyArray<TaskOutcome>): ReadonlyArray<TaskOutcome> =>
  given.map((one) => (one.outcome === "failed" ? { ...one, problem: `${one.taskId} has failed` } : one))

/** Everything that was answered, and at the end what is stored. */
const perform = Effect.fnUntraced(function* (redis: Redis["Service"], prefix: string, actions: ReadonlyArray<Action>) {
  const context = yield* Layer.build(
    services({ prefix, maxJobs: 2, maxRunning: 2 }).pipe(
      Layer.provideMerge(RedisTaskIndex.layer()),
      Layer.provideMerge(Layer.succeed(Redis, redis))
    )
  )
  const jobs = Context.get(context, Cancellations)
  const made: Array<string> = []
  const perform = (action: Action) =>
    Effect.gen(function* () {
      if (action._tag === "Wait") return yield* TestClock.adjust(action.ms)
      if (action._tag === "Create") {
        const { existing, job } = yield* jobs.create({
          selection: { taskIds: action.ids },
          reason: "why",
          by: null,
          idempotencyKey: action.key
        })
        if (!existing) made.push(job.cancellation_id)
        return [existing, made.indexOf(job.cancellation_id)]
      }
      const id = made[action.job] ?? "none"
      if (action._tag === "Stop") return yield* jobs.stop(id)
      if (action._tag === "Withdraw") return yield* jobs.withdraw(id)
      const taken = yield* jobs.take(id, action.worker, 15_000)
      const given = withProblems(action.outcomes)
      const next = yield* jobs.next(id, 2)
      const turn =
        action._tag === "Answered"
          ? yield* jobs.answered(id, action.worker, given, action.isOver)
          : yield* jobs.asked(id, action.worker, {
              position: next.position,
              size: action.size,
              outcomes: given,
              stop: action.stop
            })
      return [taken, next, turn]
    })
  const said: Array<unknown> = []
  for (const one of actions) {
    said.push(yield* Effect.catchTag(perform(one), "CancellationRefused", ({ reason }) => Effect.succeed(reason)))
    for (const id of made) {
      const view = yield* jobs.get(id)
      said.push([{ ...view, cancellation_id: "" }, yield* jobs.problems(id), yield* jobs.open(id, 0, 9)])
    }
  }
  const listed = yield* jobs.list({ limit: 9 })
  said.push(listed.items.map(({ cancellation_id }) => made.indexOf(cancellation_id)))
  said.push((yield* jobs.running).map((id) => made.indexOf(id)))
  for (const id of made) {
    const key = redis.key(`${prefix}:{cancellations}:job:${id}`)
    for (const part of ["", ":ids", ":open", ":problems"]) said.push(yield* redis.command("EXISTS", key + part))
  }
  return said
}, Effect.scoped)

describe.skipIf(TemporaryPrefix.server === null)("cancellations: the scripts' Lua and their TypeScript", () => {
  it.effect("answer the same to any sequence of steps, and leave the same behind", () =>
    Effect.gen(function* () {
      const door = <E>(layer: Layer.Layer<Redis, E>) =>
        Effect.map(Layer.build(RealTime.layer(layer)), (context) => {
          const redis = Context.get(context, Redis)
          return Redis.of({
            ...redis,
            command: (name, ...args) => RealTime.effect(redis.command(name, ...args)),
            run: (script, keys, args) => RealTime.effect(redis.run(script, keys, args))
          })
        })
      const lua = yield* door(TemporaryPrefix.layer)
      const typescript = yield* door(RedisMemory.layer({ prefix: "svc-test:" }))
      const promise = Effect.runPromiseWith(yield* Effect.context<never>())
      const same = fc.asyncProperty(fc.array(action, { minLength: 1, maxLength: 30 }), async (actions) => {
        const prefix = randomUUID()
        const performed = (redis: Redis["Service"]) =>
          Effect.andThen(TestClock.setTime(1_000_000), perform(redis, prefix, actions))
        assert.deepStrictEqual(await promise(performed(typescript)), await promise(performed(lua)))
      })
      yield* Effect.promise(() => fc.assert(same, { numRuns: 100 }))
    }).pipe(Effect.scoped)
  )
})
