import { useMemo } from "react"
import { useApi } from "../../api/queries.ts"
import { TimeChart } from "../../shared/charts/TimeChart.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { bucketMsOf } from "../../shared/usage/buckets.ts"
import { moneyText } from "../../shared/words/format.ts"
import { spendByProject } from "./spendByProject.ts"
import { seriesPath, type useSpend } from "./useNumbers.ts"

/** The API gives those with the most requests, which need not be those that spent most. */
const askedProjects = 20

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
  const drawn = useMemo(
    () => spendByProject({ from: new Date(from), to: new Date(until) }, query.data ?? [], projects.data ?? []),
    [query.data, projects.data, from, until]
  )
  // the line is left out of the drawing where it is far above all that was spent
  const most = budget === undefined ? "" : `; budget of a day ${moneyText(budget)}`
  // without the totals there would be no others, which is not the same as none that spent
  const missing = query.data === undefined ? query : projects
  return (
    <Panel title="Spend" note={`by project and day (UTC), 30 days${most}`} query={missing} height={250}>
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
