import { Stack } from "@mantine/core"
import { useRange } from "../../../address/range.ts"
import { useApi } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { TimeChart } from "../../../shared/charts/TimeChart.tsx"
import { LongerRange } from "../../../shared/links/LongerRange.tsx"
import { Empty } from "../../../shared/page/Empty.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { Tile, Tiles } from "../../../shared/page/Tile.tsx"
import { bucketMsOf, filled, intervalOf } from "../../../shared/usage/buckets.ts"
import { countText, durationText, moneyText, percentText, shortCountText } from "../../../shared/words/format.ts"
import { KeyFacts } from "../words/KeyFacts.tsx"
import type { Key } from "../words/key.ts"
import { KeyMeters } from "./KeyMeters.tsx"
import styles from "./KeyPage.module.css"
import { UsedTable } from "./UsedTable.tsx"

/** What a key has used, and how much of its limits. */
export const KeyOverview = ({ of: key }: { readonly of: Key }) => {
  const maySeeUsage = useAllowed("usage:read")
  return (
    <Stack gap="sm">
      <div className={styles.columns}>
        {maySeeUsage && <KeyMeters id={key.id} />}
        <Panel title="The key">
          <KeyFacts of={key} />
        </Panel>
      </div>
      {maySeeUsage && <KeyUsage id={key.id} />}
    </Stack>
  )
}

const KeyUsage = ({ id }: { readonly id: string }) => {
  const { range } = useRange()
  const filter = { from: range.from.toISOString(), to: range.to.toISOString(), key_id: id }
  const interval = intervalOf(range)
  const total = useApi("/admin-ui/admin/usage/summary", { query: filter })
  const series = useApi("/admin-ui/admin/usage/timeseries", { query: { ...filter, interval } })
  const sum = total.data
  return (
    <>
      <Tiles>
        <Tile
          query={total}
          label="Requests"
          value={sum && countText(sum.request_count)}
          detail={sum && `${percentText(sum.failure_count, sum.request_count)} failed`}
        />
        <Tile
          query={total}
          label="Cost"
          value={sum && moneyText(sum.estimated_cost_usd)}
          detail={sum && `${countText(sum.unpriced_request_count)} without a price`}
        />
        <Tile
          query={total}
          label="Tokens"
          value={sum && shortCountText(sum.total_tokens)}
          detail={sum && `${shortCountText(sum.input_tokens)} in, ${shortCountText(sum.output_tokens)} out`}
        />
        <Tile
          query={total}
          label="Average latency"
          value={sum && (sum.average_latency_ms === null ? "–" : durationText(sum.average_latency_ms))}
        />
      </Tiles>
      <Panel
        title="Requests and refusals"
        query={series}
        height={200}
        {...((series.data?.length ?? 0) === 0 && {
          empty: <Empty action={<LongerRange />}>No request in this range.</Empty>
        })}
      >
        <TimeChart
          label="Requests"
          kind="bars"
          bucketMs={bucketMsOf(interval)}
          format={countText}
          series={[
            { key: "success", label: "successful" },
            { key: "failure", label: "failed or refused", color: "var(--bad)" }
          ]}
          points={filled(range, interval, series.data ?? [], ([one]) => ({
            success: one?.summary.success_count ?? 0,
            failure: one?.summary.failure_count ?? 0
          }))}
        />
      </Panel>
      <div className={styles.columns}>
        <UsedTable title="Models" by="model" filter={filter} />
        <UsedTable title="Client programs" by="client" filter={filter} />
      </div>
    </>
  )
}
