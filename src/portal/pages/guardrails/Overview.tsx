import { Stack } from "@mantine/core"
import { type Range, useRange } from "../../address/range.ts"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useApi } from "../../api/queries.ts"
import { TimeChart } from "../../shared/charts/TimeChart.tsx"
import { LongerRange } from "../../shared/links/LongerRange.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { Tile, Tiles } from "../../shared/page/Tile.tsx"
import { bucketMsOf, bucketTimes, type Interval } from "../../shared/usage/buckets.ts"
import { Facts } from "../../shared/words/Facts.tsx"
import { countText, durationText, percentText } from "../../shared/words/format.ts"
import { JsonView } from "../../shared/words/JsonView.tsx"
import { actions, failureSentences, type Guardrail } from "./words/words.tsx"

type Bucket = ResponseOf<"GET", "/admin-ui/admin/guardrails/timeseries">["buckets"][number]

const colors = { allow: "var(--good)", modify: "var(--working)", warn: "var(--warning)", block: "var(--bad)" }

/** What the guardrail did in the range of the top bar, how long it took, and how it is set. */
export const Overview = ({ guardrail }: { readonly guardrail: Guardrail }) => {
  const { range } = useRange()
  const hours = (range.to.getTime() - range.from.getTime()) / bucketMsOf("hour")
  const interval: Interval = hours <= 6 ? "minute" : hours <= 72 ? "hour" : "day"
  const series = useApi("/admin-ui/admin/guardrails/timeseries", {
    query: { guardrail: guardrail.name, interval, from: range.from.toISOString(), to: range.to.toISOString() }
  })
  const buckets = series.data?.buckets ?? []
  const sum = (of: (bucket: (typeof buckets)[number]) => number) => buckets.reduce((total, one) => total + of(one), 0)
  const total = sum(({ count }) => count)
  const of = (action: string) => sum((one) => (one.action === action ? one.count : 0))
  const points = pointsOf(range, interval, buckets)
  const known = series.data !== undefined
  return (
    <Stack gap="sm">
      <Tiles>
        <Tile label="Runs" query={series} value={countText(total)} detail="in this range" />
        <Tile
          label="Changed"
          query={series}
          value={countText(of("modify"))}
          detail={percentText(of("modify"), total)}
        />
        <Tile label="Blocked" query={series} value={countText(of("block"))} detail={percentText(of("block"), total)} />
        <Tile
          label="Mean time"
          query={series}
          value={total === 0 ? "–" : durationText(sum((one) => one.total_latency_ms) / total)}
          detail={
            total === 0 ? undefined : `at most ${durationText(Math.max(...buckets.map((one) => one.max_latency_ms)))}`
          }
        />
      </Tiles>
      <Panel
        title="Executions by action"
        query={series}
        height={240}
        empty={
          known && total === 0 ? (
            <Empty action={<LongerRange />}>No request passed this guardrail in this range.</Empty>
          ) : undefined
        }
      >
        <TimeChart
          label="Executions by action"
          kind="bars"
          series={actions.map((key) => ({ key, label: key, color: colors[key] }))}
          points={points}
          format={countText}
          bucketMs={bucketMsOf(interval)}
        />
      </Panel>
      <Settings guardrail={guardrail} />
    </Stack>
  )
}

/** Returns the executions of each bucket of the range by their actions. */
const pointsOf = (range: Range, interval: Interval, buckets: ReadonlyArray<Bucket>) => {
  const byTime = Map.groupBy(buckets, ({ bucket }) => Date.parse(bucket))
  return bucketTimes(range, interval).map((at) => ({
    at,
    values: Object.fromEntries((byTime.get(at) ?? []).map(({ action, count }) => [action, count]))
  }))
}

const Settings = ({ guardrail }: { readonly guardrail: Guardrail }) => (
  <Panel title="Settings">
    <Stack gap="sm">
      <Facts
        facts={[
          ["modes", <code key="modes">{guardrail.modes.join(", ")}</code>],
          [
            "default_on",
            guardrail.default_on ? "yes: every request passes it, unless a policy forbids it" : "no: policies select it"
          ],
          [
            "failure_policy",
            <span key="policy">
              <code>{guardrail.failure_policy}</code> {failureSentences[guardrail.failure_policy]}
            </span>
          ],
          ...(guardrail.provider_kind === "http"
            ? ([
                ["endpoint_url", <code key="url">{guardrail.endpoint_url}</code>],
                ["bearer_token", guardrail.token_configured ? "configured" : "missing"],
                ["timeout_ms", guardrail.timeout_ms === null ? null : durationText(guardrail.timeout_ms)],
                ["stream_mode", <code key="stream">{guardrail.stream_mode}</code>],
                ...(guardrail.stream_mode === "window"
                  ? ([
                      ["window_chars", guardrail.window_chars === null ? null : countText(guardrail.window_chars)]
                    ] as const)
                  : [])
              ] as const)
            : [])
        ]}
      />
      <JsonView label="runtime_config" value={guardrail.runtime_config} />
    </Stack>
  </Panel>
)
