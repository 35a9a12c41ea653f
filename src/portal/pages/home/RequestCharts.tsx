import { useMemo } from "react"
import { absoluteRange, type Range, useRange } from "../../address/range.ts"
import { useApi } from "../../api/queries.ts"
import { TimeChart } from "../../shared/charts/TimeChart.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Bucket, bucketMsOf, filled, intervalOf } from "../../shared/usage/buckets.ts"
import { classSeries, classValues } from "../../shared/usage/statusClasses.ts"
import { countText, shortCountText } from "../../shared/words/format.ts"
import styles from "./Home.module.css"

const tokenSeries = [
  { key: "input", label: "input", color: "var(--series-1)" },
  { key: "cached", label: "input from a cache", color: "var(--series-7)" },
  { key: "output", label: "output", color: "var(--series-2)" },
  { key: "reasoning", label: "reasoning", color: "var(--series-4)" }
] as const

/** Reasoning is a part of the output, and cached a part of the input: each token is drawn once. */
const tokensOf = (buckets: ReadonlyArray<Bucket>) => {
  const values = { input: 0, cached: 0, output: 0, reasoning: 0 }
  for (const { summary } of buckets) {
    values.input += Math.max(0, summary.input_tokens - summary.cached_input_tokens)
    values.cached += summary.cached_input_tokens
    values.output += Math.max(0, summary.output_tokens - summary.reasoning_tokens)
    values.reasoning += summary.reasoning_tokens
  }
  return values
}

const tokenText = (count: number): string => (count < 10_000 ? countText(count) : shortCountText(count))

export const requestsPath = "/admin-ui/admin/usage/timeseries"

export const requestsRequest = (range: Pick<Range, "from" | "to">) => ({
  query: {
    from: range.from.toISOString(),
    to: range.to.toISOString(),
    interval: intervalOf(range),
    split: "code" as const,
    split_limit: 100,
    timeseries_limit: 3_000
  }
})

/** Requests and tokens over the range. Both are from one answer. */
export const RequestCharts = () => {
  const { range, setRange } = useRange()
  const interval = intervalOf(range)
  const bucketMs = bucketMsOf(interval)
  const found = useApi(requestsPath, requestsRequest(range))
  const requests = useMemo(() => filled(range, interval, found.data ?? [], classValues), [range, interval, found.data])
  const tokens = useMemo(() => filled(range, interval, found.data ?? [], tokensOf), [range, interval, found.data])
  const pick = (at: number) => setRange(absoluteRange(at, at + bucketMs))
  return (
    <div className={styles.pair}>
      <Panel title="Requests" note="by their result" query={found} height={250}>
        <TimeChart
          label="Requests by their result"
          kind="area"
          series={classSeries}
          points={requests}
          format={countText}
          bucketMs={bucketMs}
          height={190}
          onPick={pick}
        />
      </Panel>
      <Panel title="Tokens" query={found} height={250}>
        <TimeChart
          label="Tokens"
          kind="area"
          series={tokenSeries}
          points={tokens}
          format={tokenText}
          bucketMs={bucketMs}
          height={190}
          onPick={pick}
        />
      </Panel>
    </div>
  )
}
