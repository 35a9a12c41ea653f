import { useMemo } from "react"
import { useApi } from "../../api/queries.ts"
import type { Series } from "../../shared/charts/series.ts"
import { TimeChart } from "../../shared/charts/TimeChart.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { bucketMsOf, filled } from "../../shared/usage/buckets.ts"
import { unlabelledOf } from "../../shared/usage/unlabelled.ts"
import { moneyText } from "../../shared/words/format.ts"
import { seriesPath, type useSpend } from "./useNumbers.ts"

const mostProjects = 7
/** The API gives those with the most requests, which need not be those that spent most. */
const askedProjects = 20
const othersKey = "\u0000others"

/** What each project spent by the day, and the budget of the day that all keys share, if there is one. */
export const SpendChart = ({ spend: { from, query, until } }: { readonly spend: ReturnType<typeof useSpend> }) => {
  const limits = useApi("/admin-ui/admin/limits/state", { query: { scope: "global" } })
  const projects = useApi(seriesPath, {
    query: {
      interval: "day",
      from: new Date(from).toISOString(),
      split: "project",
      split_limit: askedProjects,
      timeseries_limit: 3_000
    }
  })
  const budget = limits.data?.limits.find(({ meter }) => meter === "daily_budget_usd")?.limit
  const drawn = useMemo(() => {
    const sums = new Map<string, { readonly label: string; cost: number }>()
    for (const { display_name = "", name = "", summary } of projects.data ?? []) {
      const sum = sums.get(name) ?? { label: display_name, cost: 0 }
      sum.cost += summary.estimated_cost_usd
      sums.set(name, sum)
    }
    const top = [...sums].sort(([, a], [, b]) => b.cost - a.cost).slice(0, mostProjects)
    const names = new Set(top.map(([name]) => name))
    const totals = new Set(query.data)
    const buckets = [...totals, ...(projects.data ?? [])]
    const points = filled({ from: new Date(from), to: new Date(until) }, "day", buckets, (ofDay) => {
      const values: Record<string, number> = Object.fromEntries(top.map(([name]) => [name, 0]))
      let others = 0
      for (const bucket of ofDay) {
        const { name = "", summary } = bucket
        if (totals.has(bucket)) others += summary.estimated_cost_usd
        else if (names.has(name)) {
          values[name] = (values[name] ?? 0) + summary.estimated_cost_usd
          others -= summary.estimated_cost_usd
        }
      }
      return { ...values, [othersKey]: Math.max(0, others) }
    })
    const series: ReadonlyArray<Series> = [
      ...top.map(([key, { label }]) => ({ key, label: unlabelledOf("project", key)?.label ?? label })),
      ...(sums.size > top.length ? [{ key: othersKey, label: "all others", color: "var(--idle)" }] : [])
    ]
    return { points, series }
  }, [query.data, projects.data, from, until])
  // the line is left out of the drawing where it is far above all that was spent
  const most = budget === undefined ? "" : `; budget of a day ${moneyText(budget)}`
  return (
    <Panel title="Spend" note={`by project and day (UTC), 30 days${most}`} query={projects} height={250}>
      <TimeChart
        label="Spend by project"
        kind="bars"
        series={drawn.series}
        points={drawn.points}
        format={moneyText}
        bucketMs={bucketMsOf("day")}
        height={190}
        {...(budget !== undefined && { line: { value: budget, label: "budget of a day" } })}
      />
    </Panel>
  )
}
