import { DateTime, Effect } from "effect"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { UsageFilter } from "../api/usage/UsageApi.ts"

/** In milliseconds since 1970. `start` is inclusive, `end` exclusive. An open end is infinite. */
export interface TimeRange {
  readonly start: number
  readonly end: number
}

/** The parts of a time range and the table from which each is read. */
interface SplitRange {
  readonly days: ReadonlyArray<TimeRange>
  readonly hours: ReadonlyArray<TimeRange>
  /** Parts that are read from single records: partial hours at the ends, and the time after the watermark. */
  readonly events: ReadonlyArray<TimeRange>
}

/** The coarsest table that a query can use. For example, an hourly series cannot use daily rollups. */
export type RollupGrain = "day" | "hour" | "event"

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/**
 * Splits a range into parts without overlaps or gaps. The rollups contain everything before `watermark` and nothing
 * after it. If the range continues after the watermark, the watermark's hour or day therefore counts as whole.
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

/** Splits a range as `splitRange` does, for sums by the minute. */
export const splitMinutes = (
  { end, start }: TimeRange,
  watermark: number
): { readonly minutes: ReadonlyArray<TimeRange>; readonly events: ReadonlyArray<TimeRange> } => {
  const reachesWatermark = end >= watermark
  const minutes = {
    start: ceilTo(start, minute),
    end: floorTo(reachesWatermark ? Number.POSITIVE_INFINITY : end, minute)
  }
  if (start >= watermark || minutes.start >= minutes.end) return { minutes: [], events: nonEmpty({ start, end }) }
  const head = { start, end: Math.min(minutes.start, watermark) }
  const tail = reachesWatermark ? { start: watermark, end } : { start: minutes.end, end }
  return { minutes: [minutes], events: nonEmpty(head, tail) }
}

/**
 * Takes the whole days before `until.day` and the whole hours before `until.hour` out of a range. `rest` is what
 * remains.
 */
export const splitFinished = (
  range: TimeRange,
  until: { readonly day: number; readonly hour: number }
): {
  readonly days: ReadonlyArray<TimeRange>
  readonly hours: ReadonlyArray<TimeRange>
  readonly rest: ReadonlyArray<TimeRange>
} => {
  const byDay = takeWhole(range, day, until.day)
  const byHour = byDay.rest.map((part) => takeWhole(part, hour, until.hour))
  return {
    days: byDay.whole,
    hours: byHour.flatMap(({ whole }) => whole),
    rest: byHour.flatMap(({ rest }) => rest)
  }
}

/** Takes the whole days before `until` out of a range. */
export const wholeDays = (range: TimeRange, until: number) => takeWhole(range, day, until)

const takeWhole = (range: TimeRange, step: number, until: number) => {
  const whole = { start: ceilTo(range.start, step), end: Math.min(floorTo(range.end, step), until) }
  return whole.start >= whole.end
    ? { whole: [], rest: [range] }
    : { whole: [whole], rest: nonEmpty({ start: range.start, end: whole.start }, { start: whole.end, end: range.end }) }
}

const nonEmpty = (...spans: ReadonlyArray<TimeRange>): ReadonlyArray<TimeRange> =>
  spans.filter(({ end, start }) => start < end)

const ceilTo = (at: number, step: number): number => Math.ceil(at / step) * step
const floorTo = (at: number, step: number): number => Math.floor(at / step) * step

export const validateRange = ({
  from,
  to
}: Pick<UsageFilter, "from" | "to">): Effect.Effect<void, Refused<"invalid_usage_query">> =>
  from === undefined || to === undefined || DateTime.isLessThan(from, to)
    ? Effect.void
    : Effect.fail(new ControlError("invalid_usage_query", "from must be earlier than to.", { param: "from" }))
