import { Table } from "@mantine/core"
import { useRange } from "../../address/range.ts"
import { useApi } from "../../api/queries.ts"
import { LongerRange } from "../../shared/links/LongerRange.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { Count } from "../../shared/words/Amounts.tsx"
import { durationText, percentText } from "../../shared/words/format.ts"
import styles from "./Histogram.module.css"
import { type Bar, barsOf } from "./histogram.ts"

/** Counts the requests of the range by how long the gateway itself held them up. */
export const OverheadHistogram = () => {
  const { range } = useRange()
  const query = useApi("/admin-ui/admin/usage/histogram", {
    query: { measure: "gateway_ms", from: range.from.toISOString(), to: range.to.toISOString() }
  })
  const bars = barsOf(query.data ?? [])
  const total = bars.at(-1)?.upTo ?? 0
  const most = Math.max(...bars.map(({ requests }) => requests))
  return (
    <Panel
      title="Our overhead, by request"
      note="gateway_ms, within two per cent"
      query={query}
      height={240}
      flush
      empty={
        query.data !== undefined && total === 0 ? (
          <Empty action={<LongerRange />}>No request in this range.</Empty>
        ) : undefined
      }
    >
      <Table aria-label="Requests by our overhead">
        <Table.Thead>
          <Table.Tr>
            <Table.Th w={130}>Overhead</Table.Th>
            <Table.Th className={styles.wide}>Share</Table.Th>
            <Table.Th ta="right">Requests</Table.Th>
            <Table.Th className={styles.upTo}>Up to here</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {bars.map((bar) => (
            <Table.Tr key={bar.fromMs}>
              <Table.Td>{rangeText(bar)}</Table.Td>
              <Table.Td className={styles.wide}>
                <span className={styles.share}>
                  <span className={styles.bar} style={{ width: `${(bar.requests / most) * 80}%` }} />
                  {percentText(bar.requests, total)}
                </span>
              </Table.Td>
              <Table.Td ta="right">
                <Count of={bar.requests} short />
              </Table.Td>
              <Table.Td className={styles.upTo}>{percentText(bar.upTo, total)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Panel>
  )
}

const rangeText = ({ fromMs, toMs }: Bar): string =>
  toMs === undefined
    ? `from ${durationText(fromMs)}`
    : fromMs === 0
      ? `below ${durationText(toMs)}`
      : `${durationText(fromMs)} – ${durationText(toMs)}`
