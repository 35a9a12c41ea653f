import { Effect } from "effect"

/** After this number of turns of the event loop in which nothing happens, everything that needs no time is done. */
const idleTurns = 8

/** More turns than this mean that the worker is busy without end while no virtual time passes. */
const mostTurns = 50_000

/** Waits until `activity` stays the same for some turns of the event loop. No virtual time passes. */
export const turns = (activity: () => number): Effect.Effect<void> =>
  Effect.gen(function* () {
    let before = activity()
    let idle = 0
    for (let turn = 0; idle < idleTurns && turn < mostTurns; turn++) {
      yield* Effect.yieldNow
      const now = activity()
      idle = now === before ? idle + 1 : 0
      before = now
    }
  })
