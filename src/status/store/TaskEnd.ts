import * as Timestamp from "../../messaging/envelope/Timestamp.ts"

export interface StatusFacts {
  readonly status: string
  readonly timestamp?: Timestamp.Timestamp | undefined
  /** `meta.aggregation_role` is set: the status describes the task's part in its parent's aggregation. */
  readonly ofAggregation?: boolean | undefined
}

/**
 * The terminal status in effect after `next` is stored; `undefined` while the task is running. A status after a
 * terminal one resumes the task, unless its timestamp is earlier (it arrived late) or it is one of aggregation (it
 * comes from a worker of the parent).
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
