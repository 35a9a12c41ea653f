import type { Range } from "../../../address/range.ts"
import { useApi } from "../../../api/queries.ts"
import { bucketCount, type Interval, intervals } from "../../../shared/usage/buckets.ts"
import type { UsageFilters } from "../../../shared/usage/fields.ts"
import type { SplitName } from "./groups.ts"

/** The server gives so many sums at once: one for each bucket and group. */
export const mostSums = 3_000

const hourMs = 3_600_000

/** The chart is as fine as a person can read it, and a week of ten groups fits into one answer. */
const automaticInterval = ({ from, to }: Range): Interval => {
  const length = to.getTime() - from.getTime()
  if (length <= hourMs && Date.now() - from.getTime() <= 47 * hourMs) return "minute"
  return length <= 30 * 24 * hourMs ? "hour" : "day"
}

/** Returns the interval that a person has chosen, if any. The server says where it has no such sums. */
export const chosenInterval = (text: string | undefined): Interval | undefined =>
  intervals.find((interval) => interval === text)

export const intervalFor = (range: Range, text: string | undefined): Interval =>
  chosenInterval(text) ?? automaticInterval(range)

interface Asked {
  readonly filters: UsageFilters
  readonly range: Range
  readonly interval: Interval
  readonly split: SplitName | undefined
  /** The series has so many groups, as far as they fit into one answer. */
  readonly groups: number
  readonly enabled?: boolean
}

/**
 * Reads sums over time. An answer that is full lacks the end of the range: then it is asked for as few groups as have
 * room for all of it, which are `fewGroups`.
 */
export const useSeries = ({ enabled = true, filters, groups, interval, range, split }: Asked) => {
  const query = (limit: number) => ({
    ...filters,
    from: range.from.toISOString(),
    to: range.to.toISOString(),
    interval,
    ...(split !== undefined && { split, split_limit: limit }),
    timeseries_limit: mostSums
  })
  const many = useApi("/admin-ui/admin/usage/timeseries", { query: query(groups) }, { enabled })
  const isFull = split !== undefined && (many.data?.length ?? 0) >= mostSums
  const fewGroups = Math.max(1, Math.min(groups, Math.floor(mostSums / bucketCount(range, interval))))
  const few = useApi("/admin-ui/admin/usage/timeseries", { query: query(fewGroups) }, { enabled: enabled && isFull })
  return isFull ? { query: few, fewGroups } : { query: many, fewGroups: undefined }
}
