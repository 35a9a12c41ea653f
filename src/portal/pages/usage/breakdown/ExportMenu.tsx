import { Button, Menu } from "@mantine/core"
import { IconDownload } from "@tabler/icons-react"
import { addressOf } from "../../../api/control.ts"
import { useAllowed } from "../../../api/session.ts"
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
  const query = { ...filters, from: range.from.toISOString(), to: range.to.toISOString(), all: "true" as const }
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
            <Menu.Label>All matching requests, in this range</Menu.Label>
            <Menu.Item component="a" download href={addressOf("/admin-ui/admin/usage/export.csv", { query })}>
              as CSV
            </Menu.Item>
            <Menu.Item component="a" download href={addressOf("/admin-ui/admin/usage/export.json", { query })}>
              as JSON
            </Menu.Item>
          </>
        )}
      </Menu.Dropdown>
    </Menu>
  )
}
