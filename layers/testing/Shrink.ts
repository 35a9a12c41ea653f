import { Effect } from "effect"
import { type FailedRun, type Finished, hasFailed } from "./Run.ts"
import { type Fault, faultsAt, type Schedule } from "./Schedule.ts"

/**
 * Shortens a failing schedule while it fails for the same reason. Removes faults, then moves each fault to the earliest
 * operation, and repeats both until nothing changes or after `maxRuns`.
 */
export const shrink = Effect.fnUntraced(function* (
  failed: FailedRun,
  maxRuns: number,
  run: (schedule: Schedule) => Effect.Effect<Finished>
): Effect.fn.Return<{ readonly shortest: FailedRun; readonly runs: number }> {
  const { seed } = failed.schedule
  let shortest = failed
  let runs = 0
  search: for (;;) {
    for (const faults of simpler(shortest)) {
      if (runs >= maxRuns) break search
      runs++
      const finished = yield* run({ seed, faults })
      if (!hasFailed(finished) || finished.failure.reason !== failed.failure.reason) continue
      shortest = finished
      continue search
    }
    break
  }
  return { shortest, runs }
})

/** All schedules that are one move simpler, the simplest first. */
const simpler = ({ operations, schedule: { faults } }: Finished): ReadonlyArray<ReadonlyArray<Fault>> => {
  const removed = faults.length > 1 ? faults.flatMap((_, index) => without(faults, index)) : []
  const moved = faults.flatMap((fault, index) =>
    operations
      .filter(({ kind, number }) => number < fault.at && faultsAt[kind].includes(fault.what))
      .filter(({ number }) => !faults.some(({ at }) => at === number))
      .map(({ number }) => faults.with(index, { ...fault, at: number }).toSorted((one, other) => one.at - other.at))
  )
  return [...removed, ...moved]
}

/** Without a fault, the later operations may have lower numbers. So the later faults also move, all by one distance. */
const without = (faults: ReadonlyArray<Fault>, index: number): ReadonlyArray<ReadonlyArray<Fault>> => {
  const earlier = faults.slice(0, index)
  const later = faults.slice(index + 1)
  const room = (later[0]?.at ?? 1) - (earlier.at(-1)?.at ?? 0)
  return Array.from({ length: room }, (_, distance) => [
    ...earlier,
    ...later.map(({ at, what }) => ({ at: at - distance, what }))
  ])
}
