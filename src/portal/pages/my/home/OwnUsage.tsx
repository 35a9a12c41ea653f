import { useMemo } from "react"
import { useTextSearch } from "../../../address/search.ts"
import { useNow } from "../../../address/useNow.ts"
import { useApi } from "../../../api/queries.ts"
import { TimeChart } from "../../../shared/charts/TimeChart.tsx"
import { LinkButton } from "../../../shared/links/LinkButton.tsx"
import { Empty } from "../../../shared/page/Empty.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { Segments } from "../../../shared/page/Segments.tsx"
import { countedText, moneyText, shortCountText } from "../../../shared/words/format.ts"
import { byDayAndModel } from "./ownSeries.ts"

const dayMs = 86_400_000
const shownDays = 14

/** What the key has used in two weeks, by day and model. */
export const OwnUsage = () => {
  const { change, text } = useTextSearch()
  const measure = text("measure") === "tokens" ? "tokens" : "money"
  const now = useNow(60_000)
  const today = now - (now % dayMs)
  const from = today - (shownDays - 1) * dayMs
  const query = { from: new Date(from).toISOString(), interval: "day", split: "model" } as const
  const usage = useApi("/admin-ui/v1/me/usage", { query })
  const buckets = usage.data?.buckets
  const { points, series } = useMemo(
    () =>
      byDayAndModel(buckets ?? [], from, today, ({ estimated_cost_usd, total_tokens }) =>
        measure === "money" ? estimated_cost_usd : total_tokens
      ),
    [buckets, from, today, measure]
  )
  const summary = usage.data?.summary
  return (
    <Panel
      title="What you used"
      note={
        summary !== undefined &&
        `${shownDays} days: ${moneyText(summary.estimated_cost_usd)}, ${countedText(summary.request_count, "request")}, ${shortCountText(summary.total_tokens)} tokens`
      }
      query={usage}
      height={260}
      actions={
        <Segments
          aria-label="What the chart shows"
          data={[
            { value: "money", label: "Money" },
            { value: "tokens", label: "Tokens" }
          ]}
          value={measure}
          onChange={(value) => change({ measure: value === "money" ? undefined : value })}
        />
      }
      {...(summary?.request_count === 0 && {
        empty: (
          <Empty action={<LinkButton path="/my/use">See how to send a request</LinkButton>}>
            You have not used anything in these days.
          </Empty>
        )
      })}
    >
      <TimeChart
        label={measure === "money" ? "Money by day and model" : "Tokens by day and model"}
        kind="bars"
        series={series}
        points={points}
        bucketMs={dayMs}
        format={measure === "money" ? moneyText : shortCountText}
      />
    </Panel>
  )
}
