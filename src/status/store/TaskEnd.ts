import * as Timestamp from "../../messaging/envelope/Timestamp.ts"

/** What a status says of whether its task has ended. */
export interface StatusFacts {
  readonly status: string
  /** None: an earlier release stored it. */
  readonly timestamp?: Timestamp.Timestamp | undefined
  /** `meta.aggregation_role` is set: it tells what becomes of the task's part in its parent. */
  readonly ofAggregation?: boolean | undefined
}

/**
 * The terminal status that holds once `next` is stored; none while the task is at work. Not every status behind a terminal
 * one takes the task up again: one that is earlier by its time is a straggler, and one of aggregation comes from a worker
 * of the parent.
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
