import { Button, Menu } from "@mantine/core"
import { IconDownload } from "@tabler/icons-react"
import { type ReactNode, useState } from "react"
import { useAllowed } from "../../api/session.ts"
import { type ExportedRecords, exportAddress, RecordExport } from "./RecordExport.tsx"

interface Props {
  readonly records: ExportedRecords
  /** Items of the page's own, above those of the records. */
  readonly children?: ReactNode
}

/** Saves what the page shows, and the requests below it. Only `usage:export` allows the requests. */
export const ExportMenu = ({ children, records }: Props) => {
  const [isOpen, setOpen] = useState(false)
  const mayExport = useAllowed("usage:export")
  if (!mayExport && children === undefined) return null
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button variant="default" leftSection={<IconDownload size={14} />}>
            Export
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {children}
          {children !== undefined && mayExport && <Menu.Divider />}
          {mayExport && (
            <>
              <Menu.Label>All matching requests, in this range</Menu.Label>
              <Menu.Item component="a" download href={exportAddress(records, "csv", undefined)}>
                as CSV
              </Menu.Item>
              <Menu.Item component="a" download href={exportAddress(records, "json", undefined)}>
                as JSON
              </Menu.Item>
              <Menu.Item onClick={() => setOpen(true)}>The first of them, curl, address …</Menu.Item>
            </>
          )}
        </Menu.Dropdown>
      </Menu>
      {isOpen && <RecordExport records={records} onClose={() => setOpen(false)} />}
    </>
  )
}
