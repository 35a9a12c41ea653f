import { Menu } from "@mantine/core"
import { ExportMenu } from "../../../shared/usage/ExportMenu.tsx"
import { saveText } from "../../../shared/words/saveText.ts"
import { csvOf } from "./tableCsv.ts"
import type { BreakdownData } from "./useBreakdown.ts"

interface Props {
  readonly data: BreakdownData
  readonly whole: number
}

/** Exactly what is shown: the rows of the table, or the records below them, with the same range and filters. */
export const TableExport = ({ data, whole }: Props) => {
  const { filters, group, list, range } = data
  return (
    <ExportMenu records={{ filters, from: range.from.toISOString(), to: range.to.toISOString() }}>
      <Menu.Item
        onClick={() => saveText(`usage-by-${group.name}.csv`, "text/csv", csvOf(data, whole))}
        disabled={list.length === 0}
      >
        This table as CSV
      </Menu.Item>
    </ExportMenu>
  )
}
