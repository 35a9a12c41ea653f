import type { Range } from "../../../address/range.ts"
import type { Series, TimePoint } from "../../../shared/charts/series.ts"
import { type Bucket, filled, type Interval } from "../../../shared/usage/buckets.ts"
import { unlabelledOf } from "../../../shared/usage/unlabelled.ts"
import { type Group, groups, type SplitName } from "./groups.ts"
import { type Measure, valueOf } from "./measures.ts"

/** The fields by which the chart can be split, beside the group of the table. */
export interface Split {
  readonly name: SplitName
  readonly label: string
  /** The group of the same kind, if the server breaks usage down by it. */
  readonly group?: Group
}

const ofGroups = groups.flatMap(
  (group: Group): ReadonlyArray<Split> =>
    group.split === undefined ? [] : [{ name: group.split, label: group.label, group }]
)

export const splits: ReadonlyArray<Split> = [
  ...ofGroups,
  { name: "status", label: "Success or failure" },
  { name: "code", label: "Status code" }
]

export const splitOf = (name: string | undefined): Split | undefined => splits.find((split) => split.name === name)

interface Part {
  readonly name: string
  readonly label: string
}

/** As many as colours tell apart. All others are one. */
export const mostParts = 7
const othersKey = "\u0000others"

/** The parts that have most of a measure. Averages do not add up, so that those with the most requests are taken. */
export const largestParts = (
  buckets: ReadonlyArray<Bucket>,
  { adds, of }: Measure,
  split: SplitName
): ReadonlyArray<Part> => {
  const sums = new Map<string, Part & { sum: number }>()
  for (const { display_name, name = "", summary } of buckets) {
    const part = sums.get(name) ?? { name, label: unlabelledOf(split, name)?.label ?? display_name ?? name, sum: 0 }
    part.sum += adds ? of(summary) : summary.request_count
    sums.set(name, part)
  }
  return [...sums.values()].sort((a, b) => b.sum - a.sum).slice(0, mostParts)
}

/** A line or a bar for each part, and one for all others. */
export const drawParts = (
  buckets: ReadonlyArray<Bucket>,
  parts: ReadonlyArray<Part>,
  { interval, measure, range }: { readonly range: Range; readonly interval: Interval; readonly measure: Measure }
): { readonly series: ReadonlyArray<Series>; readonly points: ReadonlyArray<TimePoint> } => {
  const names = new Set(parts.map(({ name }) => name))
  const points = filled(range, interval, buckets, (found) => {
    const byKey = Map.groupBy(found, ({ name }) => (name !== undefined && names.has(name) ? name : othersKey))
    const keys = [...names, ...(byKey.has(othersKey) ? [othersKey] : [])]
    return Object.fromEntries(keys.map((key) => [key, valueOf(measure, byKey.get(key) ?? [])]))
  })
  const hasOthers = points.some(({ values }) => (values[othersKey] ?? 0) > 0)
  return {
    points,
    series: [
      ...parts.map(({ label, name }) => ({ key: name, label })),
      ...(hasOthers ? [{ key: othersKey, label: "all others", color: "var(--idle)" }] : [])
    ]
  }
}
