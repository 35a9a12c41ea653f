import { Duration, Effect, Random } from "effect"
import { type Check, defaults } from "./Check.ts"
import type { HandlerCheckFailed } from "./HandlerCheckFailed.ts"
import * as Failed from "./HandlerCheckFailed.ts"
import { type FailedRun, hasFailed, run as runOnce } from "./Run.ts"
import { faultsAt, type Schedule } from "./Schedule.ts"
import { search } from "./Search.ts"
import { shrink } from "./Shrink.ts"

export type { Check } from "./Check.ts"
export { HandlerCheckFailed } from "./HandlerCheckFailed.ts"
export type { Fault, FaultKind, Operation, OperationKind, Schedule } from "./Schedule.ts"
export type { Settled, StoredMessage } from "./Settled.ts"

/** The result of a check that has found nothing. */
export interface Report {
  readonly seed: number
  /** All runs, including two without faults, which must be equal. */
  readonly runs: number
  /** The number of operations in the run without faults. */
  readonly operations: number
  /** The schedules with one fault: how many there are, and how many ran. Fewer ran only if `maxRuns` is too small. */
  readonly single: { readonly possible: number; readonly ran: number }
  /** The number of schedules with several faults that ran. */
  readonly combined: number
}

/** Returns the check. It infers the types of a check that is a constant. */
export const make = <World, WorldError, WorkerError, InvariantError>(
  check: Check<World, WorldError, WorkerError, InvariantError>
): Check<World, WorldError, WorkerError, InvariantError> => check

/**
 * Runs a worker under many schedules on `BrokerMemory` and `RedisMemory` in virtual time. A schedule is a list of
 * faults: crashes, lost connections, failures, delays, duplicates and reordering. The operations of the worker are
 * numbered, and each fault happens at one of them. The effects that are wrapped with `step` are operations too.
 *
 * Two runs without faults must be equal. Then each possible fault happens alone at each operation, in order. The
 * remaining runs combine faults, as the seed decides. After each run, when the worker has nothing left to do, the invariant inspects
 * the world and the broker. The same check with the same seed does the same runs.
 *
 * Fails with a `HandlerCheckFailed` at the first failing run. Its message has the shortest schedule that fails, as
 * sentences, and the code that runs this schedule again. The worker must not wait for anything outside its process,
 * such as a socket, because virtual time does not wait for it. The log of the worker is silent.
 *
 * ```ts
 * const mails = HandlerCheck.make({
 *   name: "mails",
 *   topology,
 *   world: Outbox.layerMemory,
 *   worker: TaskConsumer.layer({ handler, retryPolicy: new RetryPolicy() }),
 *   tasks: [{ task_id: "m1", task_type: "send", payload: { to: "ada@example.com" } }],
 *   invariant: ({ statusesOf }) =>
 *     Effect.gen(function* () {
 *       const { sent } = yield* Outbox
 *       assert.deepStrictEqual(sent, ["m1"])
 *       assert.include(statusesOf("m1"), "completed")
 *     })
 * })
 *
 * it.effect("sends each mail once", () => HandlerCheck.run(mails))
 * ```
 */
export const run = <World, WorldError, WorkerError, InvariantError>(
  check: Check<World, WorldError, WorkerError, InvariantError>
): Effect.Effect<Report, HandlerCheckFailed> => {
  const { maxFaults = defaults.maxFaults, maxRuns = defaults.maxRuns, seed = defaults.seed } = check
  const attempt = (schedule: Schedule) => runOnce(check, schedule)
  return Effect.gen(function* () {
    const kinds = new Set(check.faults ?? Object.values(faultsAt).flat())
    const { combined, failed, operations, runs, single } = yield* search({ kinds, maxFaults, maxRuns, seed }, attempt)
    if (failed === undefined) {
      if (single.ran < single.possible) yield* Effect.logWarning(tooFewRuns(check.name, maxRuns, single))
      return { seed, runs, operations: operations.length, single, combined }
    }
    // A single fault is already the earliest one, because the search tries them in order.
    const needsShrinking = failed.schedule.faults.length > 1
    const shrunk = needsShrinking ? yield* shrink(failed, maxRuns, attempt) : { shortest: failed, runs: 0 }
    return yield* failureOf(check, shrunk.shortest, { search: runs, shrink: shrunk.runs })
  }).pipe(Random.withSeed(seed))
}

/** Runs one schedule, such as the one in the message of a `HandlerCheckFailed`. Fails as `run` does. */
export const replay = <World, WorldError, WorkerError, InvariantError>(
  check: Check<World, WorldError, WorkerError, InvariantError>,
  schedule: Schedule
): Effect.Effect<void, HandlerCheckFailed> =>
  Effect.flatMap(runOnce(check, schedule), (finished) =>
    hasFailed(finished) ? Effect.fail(failureOf(check, finished, { search: 0, shrink: 0 })) : Effect.void
  )

const tooFewRuns = (name: string, maxRuns: number, { possible, ran }: Report["single"]): string =>
  `${name}: only ${ran} of ${possible} single faults ran, because maxRuns is ${maxRuns}. Set it to ${possible + 2} or more`

const failureOf = (
  { delay = defaults.delay, name }: Pick<Check, "name" | "delay">,
  finished: FailedRun,
  runs: HandlerCheckFailed["runs"]
): HandlerCheckFailed => Failed.make({ name, delay: Duration.format(Duration.fromInputUnsafe(delay)), finished, runs })
