import { Data } from "effect"
import type { FailedRun, Finished, RunFailure } from "./Run.ts"
import { capitalized, type Operation, type Schedule, sentenceOf } from "./Schedule.ts"

/**
 * A check failed. The message holds everything that follows, and the code that runs exactly this schedule again.
 *
 * - `invariant`: the invariant failed. `said` is the text of its error.
 * - `unsettled`: the worker had not settled at the deadline. `said` names what waits, one line each.
 * - `setup`: the world, the worker's layer or the publish of the tasks failed.
 * - `unrepeatable`: two runs without faults took different courses. `said` names the first difference. The cause may be
 *   state outside the layer of the world, real time, or random numbers that are not Effect's.
 */
export class HandlerCheckFailed extends Data.TaggedError("HandlerCheckFailed")<{
  readonly reason: RunFailure["reason"]
  readonly said: string
  /** The shortest schedule that fails. Without faults, the worker fails in any case. */
  readonly schedule: Schedule
  /** The faults of the schedule as sentences, in the order in which they struck. */
  readonly sentences: ReadonlyArray<string>
  /** The operations of the failing run, in order. */
  readonly operations: ReadonlyArray<Operation>
  /** The number of runs until the first failure, and of those that shortened its schedule. */
  readonly runs: { readonly search: number; readonly shrink: number }
  /** The code that runs this schedule again. */
  readonly replay: string
  readonly message: string
  /** The error of the invariant or of the setup, for example an `AssertionError` with its stack. */
  readonly cause?: unknown
}> {}

interface Described {
  readonly name: string
  readonly delay: string
  readonly finished: FailedRun
  readonly runs: HandlerCheckFailed["runs"]
}

export const make = ({ delay, finished, name, runs }: Described): HandlerCheckFailed => {
  const { failure, operations, schedule, struck } = finished
  const { cause, reason, said } = failure
  const sentences = [
    ...struck.map(({ fault, operation }) => sentenceOf(fault.what, operation, delay)),
    ...schedule.faults
      .filter((fault) => !struck.some((one) => one.fault === fault))
      .map(({ at, what }) => `No operation ${at} where “${what}” is possible: the fault is a no-op.`)
  ]
  const faults = schedule.faults.map(({ at, what }) => `{ at: ${at}, what: "${what}" }`).join(", ")
  const replay = `HandlerCheck.replay(${name}, { seed: ${schedule.seed}, faults: [${faults}] })`
  const message = [
    `${name}: ${headline[reason]} ${sentences.length === 0 ? "without any fault." : "under this schedule:"}`,
    ...sentences.map((sentence, index) => `  ${index + 1}. ${sentence}`),
    "",
    introduction[reason],
    ...indented(said),
    "",
    `Seed ${schedule.seed}. ${effort(runs)}The same run again:`,
    `  ${replay}`,
    "",
    "What happened:",
    ...historyOf(finished).map((line) => `  ${line}`)
  ].join("\n")
  return new HandlerCheckFailed({ reason, said, schedule, sentences, operations, runs, replay, message, cause })
}

const headline: Readonly<Record<RunFailure["reason"], string>> = {
  invariant: "the invariant fails",
  unsettled: "the worker does not settle",
  setup: "the run cannot start",
  unrepeatable: "two runs differ"
}

const introduction: Readonly<Record<RunFailure["reason"], string>> = {
  invariant: "The invariant said:",
  unsettled: "What still waits at the deadline:",
  setup: "The reason:",
  unrepeatable: "Each run must start anew: make the state of the world in its layer. The difference:"
}

const indented = (text: string): ReadonlyArray<string> => text.split("\n").map((line) => `  ${line}`)

const effort = ({ search, shrink }: HandlerCheckFailed["runs"]): string => {
  if (search === 0) return ""
  return shrink === 0 ? `Found in run ${search}. ` : `Found in run ${search}, shortened in ${shrink} further runs. `
}

/** A longer history shows its first half and its last half. */
const longestHistory = 60

const historyOf = ({ operations, struck }: Finished): ReadonlyArray<string> => {
  const lines = operations.map(({ label, number, startedAt, worker }) => {
    const faults = struck.flatMap(({ fault, operation }) => (operation.number === number ? [fault.what] : []))
    const seconds = (startedAt / 1_000).toFixed(3).replace(/\.?0+$/, "")
    return `${number}. ${seconds} s, ${worker}: ${label}${faults.length === 0 ? "" : ` — ${capitalized(faults.join(", "))}`}`
  })
  const hidden = lines.length - longestHistory
  return hidden <= 0 ? lines : lines.toSpliced(longestHistory / 2, hidden, `… ${hidden} more operations …`)
}
