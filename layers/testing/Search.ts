import { Effect, Random } from "effect"
import { type FailedRun, type Finished, hasFailed, RunFailure } from "./Run.ts"
import { type Fault, type FaultKind, faultsAt, type Operation, type Schedule } from "./Schedule.ts"

export interface Limits {
  readonly seed: number
  readonly maxRuns: number
  readonly maxFaults: number
  readonly kinds: ReadonlySet<FaultKind>
}

export interface Found {
  /** The first run that failed. Two runs without faults that differ are a failure, too. */
  readonly failed: FailedRun | undefined
  readonly runs: number
  /** The operations of the run without faults. */
  readonly operations: ReadonlyArray<Operation>
  /** The number of schedules with one fault, and of those that ran. */
  readonly single: { readonly possible: number; readonly ran: number }
  /** The number of schedules with several faults that ran. */
  readonly combined: number
}

/** A run that passed. Longer schedules extend it. */
interface Passed {
  readonly faults: ReadonlyArray<Fault>
  /** The faults that may follow in a longer schedule and were not tried yet. */
  readonly next: Array<Fault>
}

/**
 * Runs twice without faults, then with each single fault at each operation in order, then with random combinations.
 * Stops at the first run that fails, or after `maxRuns`.
 */
export const search = Effect.fnUntraced(function* (
  { kinds, maxFaults, maxRuns, seed }: Limits,
  run: (schedule: Schedule) => Effect.Effect<Finished>
): Effect.fn.Return<Found> {
  let runs = 0
  const attempt = (faults: ReadonlyArray<Fault>) => {
    runs++
    return run({ seed, faults })
  }
  /** A hang takes half an hour of virtual time, and otherwise has the effect of a lost connection. */
  const combinable = new Set(kinds)
  combinable.delete("hang")
  const following = ({ operations }: Finished, faults: ReadonlyArray<Fault>): Passed => {
    const last = faults.at(-1)?.at ?? 0
    return {
      faults,
      next: operations.flatMap((operation) => (operation.number > last ? faultsOf(operation, combinable) : []))
    }
  }

  const first = yield* attempt([])
  const { operations } = first
  const singles = operations.flatMap((operation) => faultsOf(operation, kinds))
  const found = (failed: FailedRun | undefined): Found => {
    const withFaults = Math.max(runs - 2, 0)
    const ran = Math.min(withFaults, singles.length)
    return { failed, runs, operations, single: { possible: singles.length, ran }, combined: withFaults - ran }
  }
  if (hasFailed(first)) return found(first)
  if (runs < maxRuns) {
    const second = yield* attempt([])
    const said = differenceOf(first, second)
    if (said !== undefined) return found({ ...second, failure: new RunFailure({ reason: "unrepeatable", said }) })
  }

  const passed: Array<Passed> = []
  for (const fault of singles) {
    if (runs >= maxRuns) return found(undefined)
    const finished = yield* attempt([fault])
    if (hasFailed(finished)) return found(finished)
    if (maxFaults > 1 && combinable.has(fault.what)) passed.push(following(finished, [fault]))
  }

  while (runs < maxRuns && passed.length > 0) {
    const index = yield* indexIn(passed)
    const parent = passed[index]
    const [fault] = parent === undefined ? [] : parent.next.splice(yield* indexIn(parent.next), 1)
    if (parent === undefined || fault === undefined) {
      passed.splice(index, 1)
      continue
    }
    const faults = [...parent.faults, fault]
    const finished = yield* attempt(faults)
    if (hasFailed(finished)) return found(finished)
    if (faults.length < maxFaults) passed.push(following(finished, faults))
  }
  return found(undefined)
})

/** Compares two runs of the same schedule. Labels may differ, because they may contain random ids. */
const differenceOf = (first: Finished, second: Finished): string | undefined => {
  if (hasFailed(second)) return `The first run passed. The second run failed: ${second.failure.said}`
  const length = Math.max(first.operations.length, second.operations.length)
  for (let index = 0; index < length; index++) {
    const [one, other] = [first.operations[index], second.operations[index]]
    if (one?.kind !== other?.kind) {
      return `Operation ${index + 1} of the first run is ${one?.label ?? "missing"}. In the second run it is ${other?.label ?? "missing"}.`
    }
  }
  return undefined
}

const indexIn = (list: ReadonlyArray<unknown>): Effect.Effect<number> =>
  Effect.map(Random.next, (random) => Math.floor(random * list.length))

const faultsOf = ({ kind, number }: Operation, kinds: ReadonlySet<FaultKind>): ReadonlyArray<Fault> =>
  faultsAt[kind].filter((what) => kinds.has(what)).map((what) => ({ at: number, what }))
