import { Table } from "@mantine/core"
import { useApi } from "../../../api/queries.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { LongerRange } from "../../../shared/links/LongerRange.tsx"
import { Empty } from "../../../shared/page/Empty.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { unlabelledOf } from "../../../shared/usage/unlabelled.ts"
import { Count, Money } from "../../../shared/words/Amounts.tsx"
import styles from "./KeyPage.module.css"

interface Props {
  readonly title: string
  readonly by: "model" | "client"
  readonly filter: { readonly from: string; readonly to: string; readonly key_id: string }
}

const mostRows = 8
const nothingUsed = {
  model: "No model was used in this range.",
  client: "No client program was seen in this range."
} as const

/** What a key was used for, the most used first. */
export const UsedTable = ({ by, filter, title }: Props) => {
  const query = useApi(`/admin-ui/admin/usage/by-${by}`, { query: { ...filter, breakdown_limit: mostRows } })
  const rows = query.data ?? []
  return (
    <Panel
      title={title}
      query={query}
      height={150}
      flush
      {...(rows.length === 0 && { empty: <Empty action={<LongerRange />}>{nothingUsed[by]}</Empty> })}
    >
      <Table aria-label={title}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Name</Table.Th>
            <Table.Th ta="right">Requests</Table.Th>
            <Table.Th ta="right">Cost</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map(({ display_name, name, summary }) => (
            <Table.Tr key={name}>
              <Table.Td className={styles.wrap}>
                <ForeignText>{unlabelledOf(by, name)?.label ?? display_name}</ForeignText>
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
  )
}
