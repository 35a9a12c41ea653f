import * as Timestamp from "../../messaging/envelope/Timestamp.ts"

export interface StatusFacts {
  readonly status: string
  readonly timestamp?: Timestamp.Timestamp | undefined
  /** `meta.aggregation_role` is set: the status is input for the aggregation of the parent task. */
  readonly ofAggregation?: boolean | undefined
}

/**
 * Returns the terminal status that applies after the status `next`, or `undefined` while the task is running. A later
 * status resumes an ended task, with two exceptions: its timestamp is earlier, so it has only arrived late, or it is an
 * aggregation status, which is not about this task.
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
