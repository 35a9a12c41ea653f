/** Epoch milliseconds; the start is inside, the end outside; infinite where a side is open. */
export interface TimeRange {
  readonly start: number
  readonly end: number
}

/** Where the answer about a span of time is to be read. */
export interface SplitRange {
  /** Whole days, in the sums of days. */
  readonly days: ReadonlyArray<TimeRange>
  /** Whole hours, in the sums of hours. */
  readonly hours: ReadonlyArray<TimeRange>
  /** What is left at the ends and behind the mark, in the events themselves. */
  readonly events: ReadonlyArray<TimeRange>
}

/** The widest sums that may be used: a series by the hour has no use for days, and some filters only events answer. */
export type RollupGrain = "day" | "hour" | "event"

const hour = 3_600_000
const day = 24 * hour

/**
 * Divides a span into pieces that do not overlap and leave nothing out. Sums hold what is before `mark`, all of it and
 * nothing else: for a span that reaches beyond, a bucket that the mark cuts is therefore a whole one.
 */
export const splitRange = ({ end, start }: TimeRange, mark: number, widest: RollupGrain): SplitRange => {
  if (widest === "event" || start >= mark) return { days: [], hours: [], events: nonEmpty({ start, end }) }
  const reachesMark = end >= mark
  const stop = reachesMark ? Number.POSITIVE_INFINITY : end
  const hours = { start: ceilTo(start, hour), end: floorTo(stop, hour) }
  if (hours.start >= hours.end) return { days: [], hours: [], events: nonEmpty({ start, end }) }
  const head = { start, end: Math.min(hours.start, mark) }
  const tail = reachesMark ? { start: mark, end } : { start: hours.end, end }
  const days = { start: ceilTo(start, day), end: floorTo(stop, day) }
  return widest === "hour" || days.start >= days.end
    ? { days: [], hours: [hours], events: nonEmpty(head, tail) }
    : {
        days: [days],
        hours: nonEmpty({ start: hours.start, end: days.start }, { start: days.end, end: hours.end }),
        events: nonEmpty(head, tail)
      }
}

const nonEmpty = (...spans: ReadonlyArray<TimeRange>): ReadonlyArray<TimeRange> =>
  spans.filter(({ end, start }) => start < end)

const ceilTo = (at: number, step: number): number => Math.ceil(at / step) * step
const floorTo = (at: number, step: number): number => Math.floor(at / step) * step
