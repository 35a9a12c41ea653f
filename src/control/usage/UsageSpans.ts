/** Epoch milliseconds; the start is inside, the end outside; infinite where a side is open. */
export interface Span {
  readonly start: number
  readonly end: number
}

/** Where the answer about a span of time is to be read. */
export interface Spans {
  /** Whole days, in the sums of days. */
  readonly days: ReadonlyArray<Span>
  /** Whole hours, in the sums of hours. */
  readonly hours: ReadonlyArray<Span>
  /** What is left at the ends and behind the mark, in the events themselves. */
  readonly events: ReadonlyArray<Span>
}

/** The widest sums that may be used: a series by the hour has no use for days, and some filters only events answer. */
export type Grain = "day" | "hour" | "event"

const hour = 3_600_000
const day = 24 * hour

/**
 * Divides a span into pieces that do not overlap and leave nothing out. Sums hold what is before `mark`, all of it and
 * nothing else: for a span that reaches beyond, a bucket that the mark cuts is therefore a whole one.
 */
export const split = ({ end, start }: Span, mark: number, widest: Grain): Spans => {
  if (widest === "event" || start >= mark) return { days: [], hours: [], events: some({ start, end }) }
  const beyond = end >= mark
  const stop = beyond ? Number.POSITIVE_INFINITY : end
  const hours = { start: up(start, hour), end: down(stop, hour) }
  if (hours.start >= hours.end) return { days: [], hours: [], events: some({ start, end }) }
  const head = { start, end: Math.min(hours.start, mark) }
  const tail = beyond ? { start: mark, end } : { start: hours.end, end }
  const days = { start: up(start, day), end: down(stop, day) }
  return widest === "hour" || days.start >= days.end
    ? { days: [], hours: [hours], events: some(head, tail) }
    : {
        days: [days],
        hours: some({ start: hours.start, end: days.start }, { start: days.end, end: hours.end }),
        events: some(head, tail)
      }
}

const some = (...spans: ReadonlyArray<Span>): ReadonlyArray<Span> => spans.filter(({ end, start }) => start < end)

const up = (at: number, step: number): number => Math.ceil(at / step) * step
const down = (at: number, step: number): number => Math.floor(at / step) * step
