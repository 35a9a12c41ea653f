import * as Timestamp from "../../messaging/envelope/Timestamp.ts"

export interface StatusFacts {
  readonly status: string
  readonly timestamp?: Timestamp.Timestamp | undefined
  /** True if `meta.aggregation_role` is set. The status is then an input for an aggregation in the parent task. */
  readonly ofAggregation?: boolean | undefined
}

/**
 * Returns the terminal status of a task after the status `next`, or `undefined` while the task is running. A later
 * status resumes an ended task, with two exceptions. A status with an earlier timestamp has only arrived late. An
 * aggregation status concerns the parent task.
 */
export const terminalStatusAfter = <S extends StatusFacts>(
  current: S | undefined,
  next: S,
  isTerminal: (status: string) => boolean
): S | undefined => {
  const isLate = current !== undefined && isEarlier(next, current)
  if (isTerminal(next.status)) return isLate ? current : next
  return isLate || next.ofAggregation === true ? current : undefined
}

const isEarlier = (one: StatusFacts, other: StatusFacts): boolean =>
  one.timestamp !== undefined && other.timestamp !== undefined && Timestamp.compare(one.timestamp, other.timestamp) < 0
