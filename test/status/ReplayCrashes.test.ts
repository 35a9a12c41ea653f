import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import * as RedisMemory from "../../layers/RedisMemory.ts"
import { Broker } from "../../src/services/Broker.ts"
import { Redis } from "../../src/services/Redis.ts"
import { DeadLetterStore } from "../../src/status/DeadLetterStore.ts"
import { ReplayJobs } from "../../src/status/ReplayJobs.ts"
import * as ReplayWorker from "../../src/status/ReplayWorker.ts"
import * as TemporaryNames from "../TemporaryNames.ts"
import { drained, queue, stores, variants } from "./DeadLetterServer.ts"
import { deadLetter } from "./DeadLetters.ts"

/** A process that is gone with its nth operation on a door: before it is done, or before its answer is heard. */
interface Crash {
  readonly at: number
  readonly when: "before" | "after"
}

/** The doors of a process that crashes. */
const crashing = (crash: Crash | undefined) => {
  const counted = { operations: 0 }
  const crashed = Effect.die(new Error("the process is gone"))
  const through = <A, E, R>(operation: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => {
      const n = ++counted.operations
      if (crash === undefined || n < crash.at) return operation
      return n === crash.at && crash.when === "after" ? Effect.andThen(Effect.exit(operation), crashed) : crashed
    })
  const layer = Layer.effectContext(
    Effect.gen(function* () {
      const redis = yield* Redis
      const broker = yield* Broker
      return Context.make(Redis, {
        ...redis,
        command: (name, ...args) => through(redis.command(name, ...args)),
        run: (script, keys, args) => through(redis.run(script, keys, args))
      }).pipe(Context.add(Broker, { ...broker, publish: (publication) => through(broker.publish(publication)) }))
    })
  )
  return { counted, layer }
}

interface Scenario {
  readonly messages: number
  readonly window: number
  readonly force: boolean
  readonly prefix: string
  readonly leaseSeconds: number
}

/** A job that one process begins, and another ends; what arrived, and what the job says. */
const play = Effect.fnUntraced(function* (scenario: Scenario, crash: Crash | undefined) {
  const { force, leaseSeconds, messages, prefix, window } = scenario
  const process = stores({ prefix, replay_lease_seconds: leaseSeconds }, { prefix })
  const settings = { window, perSecond: 1_000_000, leaseSeconds }
  const source = yield* queue(`source-${prefix}`)
  const { id } = yield* Effect.gen(function* () {
    const store = yield* DeadLetterStore
    const ids = Array.from({ length: messages }, (_, n) => `id-${n}`)
    yield* Effect.forEach(
      ids.keys(),
      (n) => store.record(deadLetter(n, { source_queue_name: source, state: force ? "replayed" : "dead_lettered" })),
      { concurrency: 32 }
    )
    const { job } = yield* (yield* ReplayJobs).create({ selection: { ids }, force })
    return { id: job.replay_id }
  }).pipe(Effect.provide(process))

  const { counted, layer } = crashing(crash)
  const died = yield* ReplayWorker.work(id, "first", settings).pipe(
    Effect.provide(Layer.fresh(process).pipe(Layer.provideMerge(layer))),
    Effect.exit
  )
  return yield* Effect.gen(function* () {
    const jobs = yield* ReplayJobs
    const store = yield* DeadLetterStore
    while ((yield* jobs.get(id))?.state === "running") {
      yield* ReplayWorker.work(id, "second", settings)
      yield* Effect.sleep("100 millis")
    }
    const states = yield* Effect.forEach(
      Array.from({ length: messages }, (_, n) => n),
      (n) => Effect.map(store.get(`id-${n}`), (record) => record?.state),
      { concurrency: 32 }
    )
    const arrived = new Array<number>(messages).fill(0)
    for (const { content } of yield* drained(source)) {
      const n: number = JSON.parse(Buffer.from(content).toString()).n
      arrived[n] = (arrived[n] ?? 0) + 1
    }
    const job = yield* jobs.get(id)
    const problems = yield* jobs.problems(id)
    return { arrived, counted, died, job, problems, states }
  }).pipe(Effect.provide(Layer.fresh(process)))
})

type Played = Effect.Success<ReturnType<typeof play>>

/** Each arrived once, or the job and its record say that nobody knows. */
const check = ({ arrived, job, problems, states }: Played, { messages, window }: Scenario, what: string) => {
  const unknown = new Set(problems.map(({ dlq_id }) => dlq_id))
  assert.isTrue(
    problems.every(({ outcome }) => outcome === "unknown"),
    what
  )
  for (const [n, times] of arrived.entries()) {
    if (unknown.has(`id-${n}`)) {
      assert.isAtMost(times, 1, what)
      assert.strictEqual(states[n], "replay_unknown", what)
    } else {
      assert.strictEqual(times, 1, `${what}: id-${n}`)
      assert.strictEqual(states[n], "replayed", what)
    }
  }
  assert.isAtMost(unknown.size, window, what)
  assert.deepStrictEqual(
    [job?.state, job?.replayed, job?.unknown, job?.skipped, job?.failed, job?.remaining],
    ["finished", messages - unknown.size, unknown.size, 0, 0, 0],
    what
  )
}

const memory = () =>
  Layer.provideMerge(
    TemporaryNames.layer,
    Layer.mergeAll(RedisMemory.layer({ prefix: "svc-test:" }), BrokerMemory.layer())
  )

/** Under the test's clock, which goes on until it is over. */
const elapsing = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(work)
    while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust("1 second")
    return yield* Fiber.join(fiber)
  })

describe("a crash at every step of a replay job that another process goes on with", () => {
  it.effect.each([false, true])("each message is replayed once or named as unknown; force: %s", (force) =>
    Effect.gen(function* () {
      const scenario = { messages: 10, window: 4, force, prefix: "svc", leaseSeconds: 30 }
      const run = (crash: Crash | undefined) => elapsing(Effect.provide(play(scenario, crash), memory()))
      const whole = yield* run(undefined)
      const { operations } = whole.counted
      assert.isAbove(operations, 4 * scenario.messages)
      check(whole, scenario, "without a crash")
      let inDoubt = 0
      for (let at = 1; at <= operations; at++) {
        for (const when of ["before", "after"] as const) {
          const played = yield* run({ at, when })
          assert.strictEqual(played.died._tag, "Failure", `${when} operation ${at}`)
          check(played, scenario, `${when} operation ${at}`)
          inDoubt += played.problems.length
        }
      }
      assert.isAbove(inDoubt, 0)
    })
  )
})

const real = variants.find(({ name }) => name !== "in memory")

describe.skipIf(real === undefined || real.skip)("a crash within a replay of a thousand messages", () => {
  it.live(
    "on Redis and RabbitMQ: each is replayed once or named as unknown",
    () =>
      Effect.gen(function* () {
        const scenario = { messages: 1_000, window: 32, force: false, leaseSeconds: 1 }
        const whole = yield* play({ ...scenario, prefix: "whole" }, undefined)
        check(whole, { ...scenario, prefix: "whole" }, "without a crash")
        for (const [n, part] of [0.07, 0.33, 0.58, 0.81, 0.99].entries()) {
          const crash = {
            at: Math.floor(whole.counted.operations * part) + n,
            when: n % 2 === 0 ? "before" : "after"
          } as const
          const own = { ...scenario, prefix: `crash-${n}` }
          check(yield* play(own, crash), own, `${crash.when} operation ${crash.at}`)
        }
      }).pipe(Effect.scoped, Effect.provide(real?.doors ?? memory())),
    180_000
  )
})
