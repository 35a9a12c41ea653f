import { useMemo } from "react"
import { absoluteRange, useRange } from "../../../address/range.ts"
import { useApi } from "../../../api/queries.ts"
import { TimeChart } from "../../../shared/charts/TimeChart.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { bucketMsOf, filled, intervalOf } from "../../../shared/usage/buckets.ts"
import type { UsageFilters } from "../../../shared/usage/fields.ts"
import { classSeries, classValues } from "../../../shared/usage/statusClasses.ts"
import { countText } from "../../../shared/words/format.ts"

/** The requests of the range by their result. A click on a bar looks at its time alone. */
export const RequestHistogram = ({ filters }: { readonly filters: UsageFilters }) => {
  const { range, setRange } = useRange()
  const interval = intervalOf(range)
  const bucketMs = bucketMsOf(interval)
  const found = useApi("/admin-ui/admin/usage/timeseries", {
    query: {
      ...filters,
      from: range.from.toISOString(),
      to: range.to.toISOString(),
      interval,
      split: "code",
      split_limit: 100,
      timeseries_limit: 3_000
    }
  })
  const points = useMemo(() => filled(range, interval, found.data ?? [], classValues), [range, interval, found.data])
  return (
    <Panel title="Requests" query={found} height={170} note="A click on a bar looks at its time alone.">
      <TimeChart
        label="Requests by their result"
        kind="bars"
        series={classSeries}
        points={points}
        format={countText}
        bucketMs={bucketMs}
        height={130}
        onPick={(at) => setRange(absoluteRange(at, at + bucketMs))}
      />
    </Panel>
  )
}
