import { useMemo } from "react"
import { absoluteRange, useRange } from "../../../address/range.ts"
import { useTextSearch } from "../../../address/search.ts"
import { useApi } from "../../../api/queries.ts"
import type { Series, TimePoint } from "../../../shared/charts/series.ts"
import { TimeChart } from "../../../shared/charts/TimeChart.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import type { PartQuery } from "../../../shared/page/PartQuery.ts"
import { Segments } from "../../../shared/page/Segments.tsx"
import { type Bucket, bucketMsOf, filled } from "../../../shared/usage/buckets.ts"
import { valueOf } from "./measures.ts"
import { drawParts, largestParts, mostParts } from "./parts.ts"
import type { BreakdownData } from "./useBreakdown.ts"
import { chosenInterval, mostSums } from "./useSeries.ts"

/** The measure over time, split by the group; or of both ranges, one line each. */
export const UsageChart = ({ data }: { readonly data: BreakdownData }) => {
  const { change, text } = useTextSearch()
  const { setRange } = useRange()
  const isCompared = text("compare") !== undefined
  const { measure } = data
  const drawn = useSplit(data)
  const compared = useCompared(data, isCompared)
  const kind = measure.adds && !isCompared ? (text("kind") === "area" ? "area" : "bars") : "lines"
  const { bucketMs, points, query, series } = isCompared ? compared : drawn
  return (
    <Panel
      title={`${measure.label} over time`}
      note={isCompared ? "both ranges, from their beginnings" : noteOf(data)}
      query={query}
      height={270}
      actions={
        measure.adds &&
        !isCompared && (
          <Segments
            aria-label="Kind of chart"
            data={[
              { value: "bars", label: "Bars" },
              { value: "area", label: "Area" }
            ]}
            value={kind}
            onChange={(value) => change({ kind: value === "area" ? value : undefined })}
          />
        )
      }
    >
      <TimeChart
        label={`${measure.label} over time`}
        kind={kind}
        series={series}
        points={points}
        format={measure.format}
        bucketMs={bucketMs}
        height={220}
        onPick={(at) => setRange(absoluteRange(at, at + bucketMs))}
      />
    </Panel>
  )
}

const noteOf = ({ fewGroups, group, split }: BreakdownData): string => {
  if (split === undefined && group.split === undefined) return "in all"
  const by = `by ${(split ?? group).label.toLowerCase()}`
  if (fewGroups === undefined) return by
  return `${by}, only the ${fewGroups} with the most requests: more buckets do not fit into one answer`
}

interface Drawn {
  readonly series: ReadonlyArray<Series>
  readonly points: ReadonlyArray<TimePoint>
  readonly bucketMs: number
  /** The read that the points are made of. */
  readonly query: PartQuery
}

const useSplit = (data: BreakdownData): Drawn => {
  const { group, interval, isReversed, list, measure, parts, range, series, split } = data
  const drawn = useMemo(() => {
    const of = { range, interval, measure }
    if (split !== undefined) {
      const buckets = parts.data ?? []
      return drawParts(buckets, largestParts(buckets, measure, split.name), of)
    }
    if (group.split !== undefined) {
      const buckets = series.data ?? []
      const known = new Set(buckets.map(({ name }) => name))
      // the least of all are no lines that anybody sees
      const drawn = isReversed ? largestParts(buckets, measure, group.split) : list
      return drawParts(buckets, drawn.filter(({ name }) => known.has(name)).slice(0, mostParts), of)
    }
    return {
      series: [{ key: "all", label: measure.label }],
      points: filled(range, interval, series.data ?? [], (buckets) => ({ all: valueOf(measure, buckets) }))
    }
  }, [group, interval, isReversed, list, measure, range, series.data, parts.data, split])
  return { ...drawn, bucketMs: bucketMsOf(interval), query: split === undefined ? series : parts }
}

/** A range that is not known yet, or cannot be read, is not drawn as one without requests. */
const ofBoth = (one: PartQuery, other: PartQuery): PartQuery => {
  const both = [one, other]
  return (
    both.find(({ data, error }) => error !== null && data === undefined) ??
    both.find(({ isPending }) => isPending) ??
    both.find(({ error }) => error !== null) ??
    both.find(({ isPlaceholderData }) => isPlaceholderData) ??
    (one.dataUpdatedAt < other.dataUpdatedAt ? one : other)
  )
}

/** The two ranges may differ in length, so both begin at the left. */
const useCompared = ({ filters, interval, measure, other, range }: BreakdownData, enabled: boolean): Drawn => {
  // of what is compared, minutes are seldom kept
  const { text } = useTextSearch()
  const step = chosenInterval(text("interval")) ?? (interval === "minute" ? "hour" : interval)
  const read = (of: { readonly from: Date; readonly to: Date }) => ({
    query: {
      ...filters,
      from: of.from.toISOString(),
      to: of.to.toISOString(),
      interval: step,
      timeseries_limit: step === "minute" ? mostSums : 1_000
    }
  })
  const now = useApi("/admin-ui/admin/usage/timeseries", read(range), { enabled })
  const then = useApi("/admin-ui/admin/usage/timeseries", read(other), { enabled })
  const drawn = useMemo(() => {
    const value = (buckets: ReadonlyArray<Bucket>) => ({ value: valueOf(measure, buckets) })
    const points = filled(range, step, now.data ?? [], value)
    const before = filled(other, step, then.data ?? [], value)
    const length = Math.max(points.length, before.length)
    const first = points[0]?.at ?? range.from.getTime()
    return {
      series: [
        { key: "now", label: "this range" },
        { key: "before", label: "the compared range", color: "var(--idle)" }
      ],
      points: Array.from({ length }, (_, place) => ({
        at: points[place]?.at ?? first + place * bucketMsOf(step),
        values: { now: points[place]?.values["value"] ?? null, before: before[place]?.values["value"] ?? null }
      }))
    }
  }, [step, measure, range, other, now.data, then.data])
  return { ...drawn, bucketMs: bucketMsOf(step), query: ofBoth(now, then) }
}
