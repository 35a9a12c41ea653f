import { Duration, Option } from "effect"
import type { WorkerEnd } from "./WorkerProcesses.ts"

/** `EX_CONFIG`: another start would fail in the same way. */
const configurationRefused = 78

/** The end of a worker that nobody asked to end. */
export interface UnexpectedEnd {
  readonly number: number
  readonly end: WorkerEnd
  /** Whether the process did not respond and was killed. */
  readonly wasSilent: boolean
  /** How long the worker has served. `none` if it ended before its listeners were open. */
  readonly served: Option.Option<Duration.Duration>
}

export interface OtherWorkers {
  /** Whether another worker serves now. */
  readonly serve: boolean
  /** Whether any worker has served since the start of the program. */
  readonly haveServed: boolean
}

/**
 * - `Stop`: the program ends with this exit code, as one process would.
 * - `Replace`: the worker is replaced at once.
 * - `BackOff`: the worker is replaced after a delay, which grows with each crash.
 */
export type Decision =
  | { readonly _tag: "Stop"; readonly code: number; readonly sentence: string }
  | { readonly _tag: "Replace" }
  | { readonly _tag: "BackOff" }

/** A worker that has served for this long has not crashed because of its start. */
export const stableAfter = Duration.minutes(1)

/** Crashes in quick succession that count as a crash loop. */
export const crashLoop = 3

/** Until a worker has served, a failed start ends the program. Later, the other workers go on. */
export const afterEnd = (unexpected: UnexpectedEnd, others: OtherWorkers): Decision => {
  const { end, served } = unexpected
  if (Option.isSome(served)) {
    return { _tag: Duration.isGreaterThanOrEqualTo(served.value, stableAfter) ? "Replace" : "BackOff" }
  }
  const mayStartLater = others.serve || (others.haveServed && end.status !== configurationRefused)
  return mayStartLater
    ? { _tag: "BackOff" }
    : { _tag: "Stop", code: exitCodeOf(end), sentence: describeEnd(unexpected) }
}

const exitCodeOf = ({ status }: WorkerEnd): number => (typeof status === "number" && status > 0 ? status : 1)

/** Returns the reason that the worker gave. */
export const describeEnd = ({ end: { sentence, status }, number, served, wasSilent }: UnexpectedEnd): string =>
  Option.getOrElse(sentence, () => {
    if (wasSilent) return `Worker ${number} did not respond and was killed.`
    const how = typeof status === "number" ? `ended with exit code ${status}` : `was killed by ${status}`
    return `Worker ${number} ${how}${Option.isNone(served) ? " before its listener was open" : ""}.`
  })
