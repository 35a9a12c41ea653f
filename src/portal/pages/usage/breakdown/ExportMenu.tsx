import { Button, Menu } from "@mantine/core"
import { IconDownload } from "@tabler/icons-react"
import { useAllowed } from "../../../api/session.ts"
import { RecordExport } from "../../../shared/usage/RecordExport.tsx"
import { saveText } from "../../../shared/words/saveText.ts"
import { csvOf } from "./tableCsv.ts"
import type { BreakdownData } from "./useBreakdown.ts"

interface Props {
  readonly data: BreakdownData
  readonly whole: number
}

/** Exactly what is shown: the rows of the table, or the records below them, with the same range and filters. */
export const ExportMenu = ({ data, whole }: Props) => {
  const mayExport = useAllowed("usage:export")
  const { filters, group, list, range } = data
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default" leftSection={<IconDownload size={14} />}>
          Export
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item
          onClick={() => saveText(`usage-by-${group.name}.csv`, "text/csv", csvOf(data, whole))}
          disabled={list.length === 0}
        >
          This table as CSV
        </Menu.Item>
        {mayExport && (
          <>
            <Menu.Divider />
            <RecordExport filters={filters} from={range.from.toISOString()} to={range.to.toISOString()} />
          </>
        )}
      </Menu.Dropdown>
    </Menu>
  )
}
