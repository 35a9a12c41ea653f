import { Effect } from "effect"
import type { Entrant } from "./Entrants.ts"
import type { Gateway } from "./Gateway.ts"
import { ms } from "./Latency.ts"
import * as Load from "./Load.ts"
import * as Memory from "./Memory.ts"
import { drained } from "./Proof.ts"

export interface Soaked {
  readonly minutes: number
  readonly answered: number
  readonly failed: number
  readonly problem: string | undefined
  readonly p50: number
  readonly p99: number
  readonly memory: Memory.Memory
  /** Usage rows in PostgreSQL when all is said and done. */
  readonly recorded: number
}

const connections = 32
/** One request in so many is a stream of a thousand chunks. */
const streamEvery = 50

/** Constant load with everything on, for as long as it takes to see whether memory and records hold. */
export const run = Effect.fnUntraced(function* (entrant: Entrant, { store }: Gateway, minutes: number) {
  const recordedBefore = yield* store.count("SELECT count(*) FROM usage_events")
  const [seen, memory] = yield* Memory.watched(
    entrant.child.pid,
    Load.loop(entrant.target, {
      connections,
      forMs: minutes * 60_000,
      kindOf: (index) => (index % streamEvery === 0 ? "burst" : "instant")
    })
  )
  yield* drained(store)
  const soaked: Soaked = {
    minutes,
    answered: seen.answered,
    failed: seen.failed,
    problem: seen.problem,
    p50: ms(seen.total, 50),
    p99: ms(seen.total, 99),
    memory,
    recorded: (yield* store.count("SELECT count(*) FROM usage_events")) - recordedBefore
  }
  return soaked
})
