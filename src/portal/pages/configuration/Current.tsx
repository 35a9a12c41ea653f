import { Button, Checkbox, Stack } from "@mantine/core"
import { IconDownload } from "@tabler/icons-react"
import { useTextSearch } from "../../address/search.ts"
import { useChosen } from "../../address/useChosen.ts"
import { useApi } from "../../api/queries.ts"
import { LazySelect } from "../../shared/fields/LazySelect.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { countText } from "../../shared/words/format.ts"
import { JsonView } from "../../shared/words/JsonView.tsx"

export const configurationPath = "/admin-ui/admin/configuration"

export const currentRequest = (text: (name: string) => string | undefined) => ({
  query: text("keys") === "yes" ? {} : { omit: ["keys" as const] }
})

/** The document, one section at a time, and as a file. Keys are left out unless they are asked for, because there may be more of them than a document can have. */
export const Current = () => {
  const { change, text } = useTextSearch()
  const isWithKeys = useChosen(text("keys") === "yes", (isWith) => change({ keys: isWith ? "yes" : undefined }))
  const query = useApi(configurationPath, currentRequest(text))
  const document = query.data
  const sections = Object.entries(document ?? {}).filter(([name]) => name !== "format")
  const [name, value] = sections.find(([one]) => one === text("section")) ?? sections[0] ?? ["", undefined]
  const choices = sections.map(([one, entries]) => ({
    value: one,
    label: Array.isArray(entries) ? `${one} (${countText(entries.length)})` : one
  }))
  return (
    <Panel
      title="Current document"
      query={query}
      height={420}
      actions={
        <>
          <Checkbox
            label="With keys"
            checked={isWithKeys.chosen}
            onChange={(event) => isWithKeys.choose(event.currentTarget.checked)}
          />
          {document !== undefined && (
            <Button
              variant="default"
              leftSection={<IconDownload size={14} />}
              onClick={() => save(document)}
              disabled={query.isPlaceholderData}
            >
              Save as a file
            </Button>
          )}
        </>
      }
    >
      <Stack gap="sm">
        <LazySelect
          label="Section"
          data={choices}
          value={name}
          allowDeselect={false}
          onChange={(section) => change({ section: section ?? undefined })}
          maw={280}
        />
        <JsonView label={name} value={value} />
      </Stack>
    </Panel>
  )
}

const save = (value: unknown) => {
  const address = URL.createObjectURL(new Blob([JSON.stringify(value, null, 2), "\n"], { type: "application/json" }))
  const link = document.createElement("a")
  link.href = address
  link.download = "configuration.json"
  link.click()
  URL.revokeObjectURL(address)
}
