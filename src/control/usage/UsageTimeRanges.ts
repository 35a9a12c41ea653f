/** Epoch milliseconds: `start` inclusive, `end` exclusive, infinite when open. */
export interface TimeRange {
  readonly start: number
  readonly end: number
}

/** A time range, divided by the table from which each part is read. */
export interface SplitRange {
  /** Whole days, read from the daily rollups. */
  readonly days: ReadonlyArray<TimeRange>
  /** Whole hours, read from the hourly rollups. */
  readonly hours: ReadonlyArray<TimeRange>
  /** The ends of the range, and everything after the watermark, read from the events. */
  readonly events: ReadonlyArray<TimeRange>
}

/** The coarsest source allowed: an hourly series cannot use days, and some filters need events. */
export type RollupGrain = "day" | "hour" | "event"

const hour = 3_600_000
const day = 24 * hour

/**
 * Splits a range into parts that neither overlap nor leave gaps. Rollups contain exactly what happened before
 * `watermark`, so a bucket cut by the watermark counts as whole when the range reaches past it.
 */
export const splitRange = ({ end, start }: TimeRange, watermark: number, widest: RollupGrain): SplitRange => {
  if (widest === "event" || start >= watermark) return { days: [], hours: [], events: nonEmpty({ start, end }) }
  const reachesWatermark = end >= watermark
  const stop = reachesWatermark ? Number.POSITIVE_INFINITY : end
  const hours = { start: ceilTo(start, hour), end: floorTo(stop, hour) }
  if (hours.start >= hours.end) return { days: [], hours: [], events: nonEmpty({ start, end }) }
  const head = { start, end: Math.min(hours.start, watermark) }
  const tail = reachesWatermark ? { start: watermark, end } : { start: hours.end, end }
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
