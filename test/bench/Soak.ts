import { Effect, Fiber } from "effect"
import type { Entrant } from "./Entrants.ts"
import { residentMiB } from "./Footprint.ts"
import type { Gateway } from "./Gateway.ts"
import * as Load from "./Load.ts"
import { drained } from "./Proof.ts"
import { slope } from "./Statistics.ts"

export interface Soaked {
  readonly minutes: number
  readonly answered: number
  readonly failed: number
  readonly problem: string | undefined
  readonly p50: number
  readonly p99: number
  /** Minutes since the start, resident MiB; every five seconds. */
  readonly memory: ReadonlyArray<readonly [minute: number, mebibytes: number]>
  /** Of the second half. */
  readonly mebibytesPerMinute: number
  /** Usage rows in PostgreSQL when all is said and done. */
  readonly recorded: number
}

const connections = 32
/** One request in so many is a stream of a thousand chunks. */
const streamEvery = 50

/** Constant load with everything on, for as long as it takes to see whether memory and records hold. */
export const run = Effect.fnUntraced(function* (entrant: Entrant, { store }: Gateway, minutes: number) {
  const begun = performance.now()
  const recordedBefore = yield* store.count("SELECT count(*) FROM usage_events")
  const memory: Array<readonly [number, number]> = []
  const sample = Effect.sync(() => {
    memory.push([(performance.now() - begun) / 60_000, residentMiB(entrant.child.pid)])
  })
  const sampling = yield* Effect.forkChild(Effect.forever(Effect.andThen(sample, Effect.sleep("5 seconds"))))
  const seen = yield* Load.loop(entrant.target, {
    connections,
    forMs: minutes * 60_000,
    kindOf: (index) => (index % streamEvery === 0 ? "burst" : "instant")
  })
  yield* Fiber.interrupt(sampling)
  yield* drained(store)
  const soaked: Soaked = {
    minutes,
    answered: seen.answered,
    failed: seen.failed,
    problem: seen.problem,
    p50: Load.ms(seen.total, 50),
    p99: Load.ms(seen.total, 99),
    memory,
    mebibytesPerMinute: slope(memory.slice(Math.floor(memory.length / 2))),
    recorded: (yield* store.count("SELECT count(*) FROM usage_events")) - recordedBefore
  }
  return soaked
})
