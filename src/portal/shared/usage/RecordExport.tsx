import { Button, Group, Modal, Stack } from "@mantine/core"
import { IconDownload } from "@tabler/icons-react"
import { useState } from "react"
import { addressOf } from "../../api/control.ts"
import { LazySelect } from "../fields/LazySelect.tsx"
import { Segments } from "../page/Segments.tsx"
import { curlOf } from "../words/CopyAs.tsx"
import { CopyText } from "../words/CopyText.tsx"
import { countText } from "../words/format.ts"
import type { UsageFilters } from "./fields.ts"

/** Which requests are exported. */
export interface ExportedRecords {
  readonly filters: UsageFilters
  readonly from: string
  readonly to: string | undefined
}

const formats = [
  { value: "csv", label: "CSV" },
  { value: "json", label: "JSON" }
] as const
type Format = (typeof formats)[number]["value"]

const counts = [100, 1_000, 10_000].map((count) => ({ value: String(count), label: `the first ${countText(count)}` }))

/** Without `first` all are exported. */
export const exportAddress = (
  { filters, from, to }: ExportedRecords,
  format: Format,
  first: number | undefined
): string => {
  const part = first === undefined ? { all: "true" as const } : { limit: first }
  const query = { ...filters, from, to, ...part }
  return format === "csv"
    ? addressOf("/admin-ui/admin/usage/export.csv", { query })
    : addressOf("/admin-ui/admin/usage/export.json", { query })
}

interface Props {
  readonly records: ExportedRecords
  readonly onClose: () => void
}

/** An export of some or all of the requests: as a file, as a command, and as an address. */
export const RecordExport = ({ onClose, records }: Props) => {
  const [format, setFormat] = useState<Format>("csv")
  const [first, setFirst] = useState<string | null>(null)
  const address = exportAddress(records, format, first === null ? undefined : Number(first))
  return (
    <Modal opened onClose={onClose} title="Export requests">
      <Stack gap="sm">
        <Segments aria-label="Format" data={formats} value={format} onChange={setFormat} />
        <LazySelect
          label="Requests"
          description="Those that match the filters in this range, oldest first."
          placeholder="all"
          data={counts}
          value={first}
          onChange={setFirst}
          clearable
        />
        <Group justify="end" gap="xs">
          <CopyText label="Copy as curl" what="The command" text={() => curlOf({ address })} />
          <CopyText label="Copy address" what="The address" text={() => window.location.origin + address} />
          <Button component="a" download href={address} leftSection={<IconDownload size={14} />}>
            Download
          </Button>
        </Group>
      </Stack>
    </Modal>
  )
}
