import * as Timestamp from "../../messaging/envelope/Timestamp.ts"

/** The fields of a status that decide whether its task has ended. */
export interface StatusFacts {
  readonly status: string
  /** Absent for events stored by an earlier release. */
  readonly timestamp?: Timestamp.Timestamp | undefined
  /** `meta.aggregation_role` is set: the status describes the task's part in its parent's aggregation. */
  readonly ofAggregation?: boolean | undefined
}

/**
 * The terminal status in effect after `next` is stored; `undefined` while the task is running.
 *
 * A non-terminal status after a terminal one normally means that the task was resumed. There are two exceptions: a
 * status with an earlier timestamp arrived late, and a status of aggregation comes from a worker of the parent.
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
