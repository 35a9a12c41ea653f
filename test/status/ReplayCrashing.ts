import { assert } from "@effect/vitest"
import { Context, Effect, Exit, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Broker } from "../../src/services/Broker.ts"
import { Redis } from "../../src/services/Redis.ts"
import { DeadLetterStore } from "../../src/status/dead-letters/DeadLetterStore.ts"
import { begin, settle } from "../../src/status/dead-letters/ReplayScripts.ts"
import { advance } from "../../src/status/replay/ReplayJobScripts.ts"
import { ReplayJobs } from "../../src/status/replay/ReplayJobs.ts"
import * as ReplayWorker from "../../src/status/replay/ReplayWorker.ts"
import { drained, queue, stores } from "./DeadLetterServer.ts"
import { deadLetter } from "./DeadLetters.ts"

/** A process is gone with an operation on a door: before it is done, or before its answer is heard. */
export type Fate = "lives" | "before" | "after"

/** Asked at every operation. `step`: what is done, and with which message or where in the job; in every job the same. */
export type Fates = (step: string) => Fate

interface Operation {
  readonly name: string
  readonly args: ReadonlyArray<string | number>
}

/** What was done through the doors of all processes of a job. */
class Ledger {
  readonly published = new Map<number, number>()
  /** Begun, and not settled: whose process is gone in between is in doubt. */
  readonly open = new Set<number>()
  #position = 0

  #messageOf({ args: [first] }: Operation): number | undefined {
    const found = /(?:^|:)(?:id|message)-(\d+)$/.exec(String(first))
    return found === null ? undefined : Number(found[1])
  }

  stepOf(operation: Operation): string {
    const message = this.#messageOf(operation)
    return message === undefined ? `${operation.name} at ${this.#position}` : `${operation.name} of message ${message}`
  }

  done(operation: Operation): void {
    const message = this.#messageOf(operation)
    if (operation.name === advance.name) this.#position = Number(operation.args[3])
    if (message === undefined) return
    if (operation.name === begin.name) this.open.add(message)
    if (operation.name === publish) this.published.set(message, (this.published.get(message) ?? 0) + 1)
    if (operation.name === settle.name) this.open.delete(message)
  }
}

const publish = "publish"

const mortal = (ledger: Ledger, fates: Fates) => {
  const process = { isGone: false }
  const gone = Effect.die(new Error("the process is gone"))
  const through = <A, E, R>(operation: Operation, done: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => {
      const fate = process.isGone ? "before" : fates(ledger.stepOf(operation))
      if (fate !== "lives") process.isGone = true
      if (fate === "before") return gone
      ledger.done(operation)
      return fate === "after" ? Effect.andThen(Effect.exit(done), gone) : done
    })
  const doors = Layer.effectContext(
    Effect.gen(function* () {
      const redis = yield* Redis
      const broker = yield* Broker
      return Context.make(Redis, {
        ...redis,
        command: (name, ...args) => through({ name, args }, redis.command(name, ...args)),
        run: (script, keys, args) => through({ name: script.name, args }, redis.run(script, keys, args))
      }).pipe(
        Context.add(Broker, {
          ...broker,
          publish: (publication) =>
            through({ name: publish, args: [publication.properties.messageId ?? ""] }, broker.publish(publication))
        })
      )
    })
  )
  return { process, doors }
}

export interface Scenario {
  readonly messages: number
  readonly window: number
  readonly force: boolean
}

const leaseSeconds = 30

/**
 * A job, worked on by one process after the other until it is over; each begins when the leases of the one before are
 * over. What arrived, and what the job and its records say, is held against what was done.
 */
export const play = Effect.fnUntraced(function* ({ force, messages, window }: Scenario, fates: Fates) {
  const doorless = stores({ replay_lease_seconds: leaseSeconds })
  const settings = { window, perSecond: Number.POSITIVE_INFINITY, leaseSeconds }
  const source = yield* queue("source")
  const ids = Array.from({ length: messages }, (_, n) => `id-${n}`)
  const id = yield* Effect.gen(function* () {
    const store = yield* DeadLetterStore
    const state = force ? "replayed" : "dead_lettered"
    yield* Effect.forEach(ids.keys(), (n) => store.record(deadLetter(n, { source_queue_name: source, state })), {
      concurrency: 32,
      discard: true
    })
    return (yield* (yield* ReplayJobs).create({ selection: { ids }, force })).job.replay_id
  }).pipe(Effect.provide(doorless))

  const ledger = new Ledger()
  const doubt = new Set<number>()
  let crashes = 0
  for (let isOver = false; !isOver; ) {
    const { doors, process } = mortal(ledger, fates)
    const ended = yield* ReplayWorker.work(id, `process ${crashes}`, settings).pipe(
      Effect.provide(Layer.fresh(doorless).pipe(Layer.provideMerge(doors))),
      Effect.exit
    )
    isOver = !process.isGone
    if (isOver) yield* ended
    else assert.isTrue(Exit.isFailure(ended))
    for (const message of ledger.open) doubt.add(message)
    ledger.open.clear()
    crashes += isOver ? 0 : 1
    yield* TestClock.adjust(`${leaseSeconds} seconds`)
  }

  yield* Effect.gen(function* () {
    const jobs = yield* ReplayJobs
    const store = yield* DeadLetterStore
    const arrived = new Map<number, number>()
    for (const { content } of yield* drained(source)) {
      const { n } = JSON.parse(Buffer.from(content).toString())
      arrived.set(n, (arrived.get(n) ?? 0) + 1)
    }
    const records = yield* Effect.forEach(ids, (id) => store.get(id), { concurrency: 32 })
    assert.deepStrictEqual(
      records.map((record, n) => `${n}: ${arrived.get(n) ?? 0}, ${record?.state}, ${record?.replay_count}`),
      ids.map((_, n) =>
        doubt.has(n) ? `${n}: ${ledger.published.get(n) ?? 0}, replay_unknown, 0` : `${n}: 1, replayed, 1`
      )
    )
    assert.isAtMost(Math.max(...arrived.values()), 1)
    const problems = yield* jobs.problems(id)
    assert.deepStrictEqual(
      problems.map(({ dlq_id, outcome }) => `${dlq_id} ${outcome}`).toSorted(),
      [...doubt].map((n) => `id-${n} unknown`).toSorted()
    )
    const job = yield* jobs.get(id)
    assert.deepStrictEqual(
      [job?.state, job?.replayed, job?.unknown, job?.skipped, job?.failed, job?.remaining],
      ["finished", messages - doubt.size, doubt.size, 0, 0, 0]
    )
  }).pipe(Effect.provide(Layer.fresh(doorless)))
  return { crashes, unknown: doubt.size }
})
