import { Stack, Table } from "@mantine/core"
import { useRange } from "../../address/range.ts"
import { useApi } from "../../api/queries.ts"
import { TimeChart } from "../../shared/charts/TimeChart.tsx"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { LongerRange } from "../../shared/links/LongerRange.tsx"
import { PathLink } from "../../shared/links/PathLink.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { Tile, Tiles } from "../../shared/page/Tile.tsx"
import { bucketMsOf, filled, intervalOf } from "../../shared/usage/buckets.ts"
import { Count, Money } from "../../shared/words/Amounts.tsx"
import { countText, moneyText, percentText, shortCountText } from "../../shared/words/format.ts"
import type { Project } from "./project.ts"

const mostRows = 10

/** What the keys of a project have used. */
export const ProjectUsage = ({ of: project }: { readonly of: Project }) => {
  const { range } = useRange()
  const filter = { from: range.from.toISOString(), to: range.to.toISOString(), project_id: project.id }
  const interval = intervalOf(range)
  const total = useApi("/admin-ui/admin/usage/summary", { query: filter })
  const series = useApi("/admin-ui/admin/usage/timeseries", { query: { ...filter, interval } })
  const models = useApi("/admin-ui/admin/usage/by-model", {
    query: { ...filter, breakdown_limit: mostRows, sort_by: "cost" }
  })
  const sum = total.data
  return (
    <Stack gap="sm">
      <Tiles>
        <Tile
          query={total}
          label="Requests"
          value={sum && countText(sum.request_count)}
          detail={sum && `${percentText(sum.failure_count, sum.request_count)} failed`}
        />
        <Tile query={total} label="Cost" value={sum && moneyText(sum.estimated_cost_usd)} />
        <Tile
          query={total}
          label="Tokens"
          value={sum && shortCountText(sum.total_tokens)}
          detail={sum && `${shortCountText(sum.input_tokens)} in, ${shortCountText(sum.output_tokens)} out`}
        />
      </Tiles>
      <Panel
        title="Cost over time"
        query={series}
        height={220}
        actions={<PathLink path={`/usage?project_id=${project.id}`}>All usage</PathLink>}
        {...((series.data?.length ?? 0) === 0 && {
          empty: <Empty action={<LongerRange />}>No request in this range.</Empty>
        })}
      >
        <TimeChart
          label="Cost"
          kind="bars"
          bucketMs={bucketMsOf(interval)}
          format={moneyText}
          series={[{ key: "cost", label: "cost" }]}
          points={filled(range, interval, series.data ?? [], ([one]) => ({
            cost: one?.summary.estimated_cost_usd ?? 0
          }))}
        />
      </Panel>
      <Panel
        title="Models"
        query={models}
        height={160}
        flush
        {...((models.data?.length ?? 0) === 0 && {
          empty: <Empty action={<LongerRange />}>No model was used in this range.</Empty>
        })}
      >
        <Table aria-label="Models">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Model</Table.Th>
              <Table.Th ta="right">Requests</Table.Th>
              <Table.Th ta="right">Cost</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {models.data?.map(({ display_name, name, summary }) => (
              <Table.Tr key={name}>
                <Table.Td>
                  <ForeignText>{display_name}</ForeignText>
                </Table.Td>
                <Table.Td ta="right">
                  <Count of={summary.request_count} short />
                </Table.Td>
                <Table.Td ta="right">
                  <Money usd={summary.estimated_cost_usd} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Panel>
    </Stack>
  )
}
