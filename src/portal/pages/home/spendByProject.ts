import type { Range } from "../../address/range.ts"
import type { Series, TimePoint } from "../../shared/charts/series.ts"
import { type Bucket, filled } from "../../shared/usage/buckets.ts"
import { unlabelledOf } from "../../shared/usage/unlabelled.ts"

const mostProjects = 7
const othersKey = "\u0000others"

export interface SpendByProject {
  readonly series: ReadonlyArray<Series>
  readonly points: ReadonlyArray<TimePoint>
}

/** Draws the projects that spent most, and the rest of the days' totals as all others. `projects` may lack some of them. */
export const spendByProject = (
  range: Pick<Range, "from" | "to">,
  totals: ReadonlyArray<Bucket>,
  projects: ReadonlyArray<Bucket>
): SpendByProject => {
  const sums = new Map<string, { readonly label: string; cost: number }>()
  for (const { display_name = "", name = "", summary } of projects) {
    const sum = sums.get(name) ?? { label: display_name, cost: 0 }
    sum.cost += summary.estimated_cost_usd
    sums.set(name, sum)
  }
  const top = [...sums].sort(([, a], [, b]) => b.cost - a.cost).slice(0, mostProjects)
  const isTotal = new Set(totals)
  const points = filled(range, "day", [...totals, ...projects], (buckets) => {
    const values: Record<string, number> = Object.fromEntries(top.map(([name]) => [name, 0]))
    let others = 0
    for (const bucket of buckets) {
      const { name = "", summary } = bucket
      const drawn = values[name]
      if (isTotal.has(bucket)) others += summary.estimated_cost_usd
      else if (drawn !== undefined) {
        values[name] = drawn + summary.estimated_cost_usd
        others -= summary.estimated_cost_usd
      }
    }
    // the totals may have been read a moment before
    return { ...values, [othersKey]: Math.max(0, others) }
  })
  const series: ReadonlyArray<Series> = [
    ...top.map(([key, { label }]) => ({ key, label: unlabelledOf("project", key)?.label ?? label })),
    ...(sums.size > top.length ? [{ key: othersKey, label: "all others", color: "var(--idle)" }] : [])
  ]
  return { series, points }
}
