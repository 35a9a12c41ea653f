import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { type RollupGrain, splitRange, type TimeRange } from "../../../src/control/usage/UsageTimeRanges.ts"

const hour = 3_600_000
const day = 24 * hour

/** Quarters of an hour: most are no boundary, some are one of hours, few of days. */
const Quarter = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 96 * 5 }))
const End = Schema.NullOr(Quarter)
const Widest = Schema.Literals(["day", "hour", "event"])

const at = (quarter: number | null, open: number): number => (quarter === null ? open : quarter * (hour / 4))
const inside = (moment: number, { end, start }: TimeRange): boolean => start <= moment && moment < end
const spanOf = (from: number | null, to: number | null): TimeRange => ({
  start: at(from, Number.NEGATIVE_INFINITY),
  end: at(to, Number.POSITIVE_INFINITY)
})

/** How often an event of this moment is counted, when the sums hold what is before `mark`. */
const counted = (moment: number, span: TimeRange, mark: number, widest: RollupGrain): number => {
  const { days, events, hours } = splitRange(span, mark, widest)
  const isSummed = moment < mark
  const bucket = (width: number) => Math.floor(moment / width) * width
  return [
    ...days.map((part) => isSummed && inside(bucket(day), part)),
    ...hours.map((part) => isSummed && inside(bucket(hour), part)),
    ...events.map((part) => inside(moment, part))
  ].filter(Boolean).length
}

describe("The division of a range", () => {
  it.effect.prop(
    "counts every event of the range once and no other, wherever the mark is",
    [End, End, Quarter, Widest, Quarter, Schema.Int.check(Schema.isBetween({ minimum: -1, maximum: 1 }))],
    ([from, to, mark, widest, near, shift]) =>
      Effect.sync(() => {
        const span = spanOf(from, to)
        const moment = at(near, 0) + shift
        const expected = inside(moment, span) ? 1 : 0
        assert.strictEqual(counted(moment, span, at(mark, 0) + shift, widest), expected)
      }),
    { arbitrary: { runs: 3000 } }
  )

  it.effect.prop(
    "reads less than two hours of events before the mark, and less than two days of hours",
    [Quarter, Quarter, Quarter],
    ([from, to, mark]) =>
      Effect.sync(() => {
        const { events, hours } = splitRange(spanOf(from, to), at(mark, 0), "day")
        const length = (spans: ReadonlyArray<TimeRange>) =>
          spans.reduce((sum, { end, start }) => sum + Math.max(0, Math.min(end, at(mark, 0)) - start), 0)
        assert.isBelow(length(events), 2 * hour)
        assert.isBelow(length(hours), 2 * day)
      }),
    { arbitrary: { runs: 1000 } }
  )
})
