import { Button, Group } from "@mantine/core"
import { IconDownload } from "@tabler/icons-react"
import { useMemo, useState } from "react"
import { useTextSearch } from "../../../address/search.ts"
import { Panel } from "../../../shared/page/Panel.tsx"
import { Segments } from "../../../shared/page/Segments.tsx"
import { CodeBlock } from "../../../shared/words/CodeBlock.tsx"
import { bytesText } from "../../../shared/words/format.ts"
import styles from "./Task.module.css"
import type { TaskData } from "./useTask.ts"

const pageSize = 20_000

const parts = ["explanation", "history", "graph", "mermaid"] as const
type Part = (typeof parts)[number]

/** What the API has answered, page by page, and as a file. */
export const RawTab = ({ task }: { readonly task: TaskData }) => {
  const { change, text } = useTextSearch()
  const part = parts.find((one) => one === text("raw")) ?? "explanation"
  const [page, setPage] = useState(0)
  const query = { explanation: task.explanation, history: task.history, graph: task.view, mermaid: task.view }[part]
  const written = useMemo(() => textOf(part, task), [part, task])
  const pages = Math.max(1, Math.ceil(written.length / pageSize))
  const shown = Math.min(page, pages - 1)
  return (
    <Panel
      title="Raw"
      note={bytesText(new TextEncoder().encode(written).length)}
      query={query}
      height={320}
      actions={
        <>
          <Segments
            aria-label="Which data"
            data={[...parts]}
            value={part}
            onChange={(value) => {
              change({ raw: value })
              setPage(0)
            }}
          />
          <Button
            variant="default"
            leftSection={<IconDownload size={14} />}
            onClick={() => download(written, `${part}.${part === "mermaid" ? "txt" : "json"}`)}
          >
            Download
          </Button>
        </>
      }
    >
      <div className={styles.stack}>
        <CodeBlock text={written.slice(shown * pageSize, (shown + 1) * pageSize)} label={part} />
        {pages > 1 && (
          <Group gap={8}>
            <Button variant="default" disabled={shown === 0} onClick={() => setPage(shown - 1)}>
              Before
            </Button>
            <span>
              page {shown + 1} of {pages}
            </span>
            <Button variant="default" disabled={shown === pages - 1} onClick={() => setPage(shown + 1)}>
              Next
            </Button>
          </Group>
        )}
      </div>
    </Panel>
  )
}

const textOf = (part: Part, { explanation, history, view }: TaskData): string => {
  if (part === "mermaid") return view.data?.mermaid ?? ""
  const value = { explanation: explanation.data, history: history.data, graph: view.data?.graph }[part]
  return JSON.stringify(value, null, 2) ?? ""
}

const download = (text: string, name: string): void => {
  const address = URL.createObjectURL(new Blob([text], { type: "text/plain" }))
  Object.assign(document.createElement("a"), { href: address, download: name }).click()
  window.setTimeout(() => URL.revokeObjectURL(address), 60_000)
}
