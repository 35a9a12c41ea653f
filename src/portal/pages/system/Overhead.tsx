import { useRange } from "../../address/range.ts"
import { useApi } from "../../api/queries.ts"
import { TimeChart } from "../../shared/charts/TimeChart.tsx"
import { LongerRange } from "../../shared/links/LongerRange.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { bucketMsOf, filled, intervalOf } from "../../shared/usage/buckets.ts"
import { durationText } from "../../shared/words/format.ts"

/** What the gateway itself adds to a request, without the upstream. */
export const Overhead = () => {
  const { range } = useRange()
  const interval = intervalOf(range)
  const series = useApi("/admin-ui/admin/usage/timeseries", {
    query: { interval, quantiles: "p50,p95,p99", from: range.from.toISOString(), to: range.to.toISOString() }
  })
  const points = filled(range, interval, series.data ?? [], ([one]) => {
    const { p50 = null, p95 = null, p99 = null } = one?.quantiles?.gateway_ms ?? {}
    return { p50, p95, p99 }
  })
  return (
    <Panel
      title="Our overhead"
      note="gateway_ms: from the request to the response, without the upstream"
      query={series}
      height={240}
      empty={series.data?.length === 0 ? <Empty action={<LongerRange />}>No request in this range.</Empty> : undefined}
    >
      <TimeChart
        label="Overhead of the gateway"
        kind="lines"
        series={[
          { key: "p50", label: "p50" },
          { key: "p95", label: "p95" },
          { key: "p99", label: "p99" }
        ]}
        points={points}
        format={durationText}
        bucketMs={bucketMsOf(interval)}
      />
    </Panel>
  )
}
