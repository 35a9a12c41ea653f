import type { Range } from "../../address/range.ts"
import type { ResponseOf } from "../../api/Endpoints.ts"
import type { TimePoint } from "../charts/series.ts"

export type Bucket = ResponseOf<"GET", "/admin-ui/admin/usage/timeseries">[number]
export const intervals = ["minute", "hour", "day"] as const
export type Interval = (typeof intervals)[number]

const lengths = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const

export const bucketMsOf = (interval: Interval): number => lengths[interval]

/** Minutes are kept for two days, so that a short range that is older has hours. */
const minutesMs = 47 * lengths.hour

/** Buckets that make a chart of up to some hundred. */
export const intervalOf = ({ from, to }: Pick<Range, "from" | "to">, now = Date.now()): Interval => {
  const length = to.getTime() - from.getTime()
  if (length <= 6 * lengths.hour && now - from.getTime() <= minutesMs) return "minute"
  return length <= 8 * lengths.day ? "hour" : "day"
}

const startOf = ({ from }: Pick<Range, "from">, interval: Interval): number =>
  Math.floor(from.getTime() / lengths[interval]) * lengths[interval]

/** The number of buckets of a range, which need not begin with one. */
export const bucketCount = (range: Pick<Range, "from" | "to">, interval: Interval): number =>
  Math.max(0, Math.ceil((range.to.getTime() - startOf(range, interval)) / lengths[interval]))

/** The beginnings of the buckets of a range. A chart has no room for more. */
export const bucketTimes = (range: Pick<Range, "from" | "to">, interval: Interval): ReadonlyArray<number> => {
  const first = startOf(range, interval)
  return Array.from(
    { length: Math.min(mostBuckets, bucketCount(range, interval)) },
    (_, place) => first + place * lengths[interval]
  )
}

const mostBuckets = 4_000

/** Points for all buckets of the range: those without requests are zero, for the API leaves them out. */
export const filled = (
  range: Pick<Range, "from" | "to">,
  interval: Interval,
  buckets: ReadonlyArray<Bucket>,
  valuesOf: (buckets: ReadonlyArray<Bucket>) => Readonly<Record<string, number | null>>
): ReadonlyArray<TimePoint> => {
  const byTime = Map.groupBy(buckets, ({ bucket }) => Date.parse(bucket))
  return bucketTimes(range, interval).map((at) => ({ at, values: valuesOf(byTime.get(at) ?? []) }))
}
