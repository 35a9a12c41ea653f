import * as Timestamp from "../../messaging/envelope/Timestamp.ts"

/** What a status says of whether its task has ended. */
export interface Said {
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
export const after = <S extends Said>(
  end: S | undefined,
  next: S,
  isTerminal: (status: string) => boolean
): S | undefined => {
  const isLate = end !== undefined && isEarlier(next, end)
  if (isTerminal(next.status)) return isLate ? end : next
  return isLate || next.ofAggregation === true ? end : undefined
}

const isEarlier = (one: Said, other: Said): boolean =>
  one.timestamp !== undefined && other.timestamp !== undefined && Timestamp.compare(one.timestamp, other.timestamp) < 0
