import { Stack } from "@mantine/core"
import { useRange } from "../../address/range.ts"
import { useApi } from "../../api/queries.ts"
import { TimeChart } from "../../shared/charts/TimeChart.tsx"
import { LongerRange } from "../../shared/links/LongerRange.tsx"
import { PathLink } from "../../shared/links/PathLink.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { Tile, Tiles } from "../../shared/page/Tile.tsx"
import { bucketMsOf, filled, intervalOf } from "../../shared/usage/buckets.ts"
import { countText, durationText, moneyText, percentText } from "../../shared/words/format.ts"

/** What went through the service in the range of the top bar. */
export const ServiceUsage = ({ name }: { readonly name: string }) => {
  const { range } = useRange()
  const interval = intervalOf(range)
  const query = { service: name, from: range.from.toISOString(), to: range.to.toISOString() }
  const series = useApi("/admin-ui/admin/usage/timeseries", { query: { ...query, interval } })
  const total = useApi("/admin-ui/admin/usage/summary", { query })
  const sum = total.data
  const rows = Array.isArray(series.data) ? series.data : []
  return (
    <Stack gap="sm">
      <Tiles>
        <Tile query={total} label="Requests" value={sum && countText(sum.request_count)} detail="in this range" />
        <Tile
          query={total}
          label="Failures"
          value={sum && countText(sum.failure_count)}
          detail={sum && percentText(sum.failure_count, sum.request_count)}
        />
        <Tile query={total} label="Cost" value={sum && moneyText(sum.estimated_cost_usd)} />
        <Tile
          query={total}
          label="Mean time"
          value={sum && (sum.average_latency_ms === null ? "–" : durationText(sum.average_latency_ms))}
        />
      </Tiles>
      <Panel
        title="Requests over time"
        query={series}
        height={240}
        actions={<PathLink path={`/requests?service=${encodeURIComponent(name)}`}>Its requests</PathLink>}
        empty={
          series.data !== undefined && rows.length === 0 ? (
            <Empty action={<LongerRange />}>No request went to this service in this range.</Empty>
          ) : undefined
        }
      >
        <TimeChart
          label={`Requests to ${name}`}
          kind="bars"
          series={[
            { key: "success", label: "success", color: "var(--good)" },
            { key: "failure", label: "failure", color: "var(--bad)" }
          ]}
          points={filled(range, interval, rows, ([one]) => ({
            success: one?.summary.success_count ?? 0,
            failure: one?.summary.failure_count ?? 0
          }))}
          format={countText}
          bucketMs={bucketMsOf(interval)}
        />
      </Panel>
    </Stack>
  )
}
