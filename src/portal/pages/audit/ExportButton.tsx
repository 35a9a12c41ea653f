import { Button } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { IconDownload } from "@tabler/icons-react"
import { useEffect, useRef, useState } from "react"
import { page } from "../../api/control.ts"
import type { QueryOf } from "../../api/Endpoints.ts"
import { countText } from "../../shared/words/format.ts"
import { errorOf } from "./verification.ts"

type Filters = QueryOf<"GET", "/admin-ui/admin/audit-events">
type Query = { readonly [Name in keyof Filters]?: Filters[Name] | undefined }

const eventsAtOnce = 500
/** As many as a browser keeps without pain. The command `audit archive` has no such limit. */
const mostEvents = 100_000

/** Saves the events of the view as a file: one event of JSON in each line, the newest first. */
export const ExportButton = ({ query }: { readonly query: Query }) => {
  const [count, setCount] = useState<number>()
  const running = useRef<AbortController>(undefined)
  useEffect(() => () => running.current?.abort(), [])

  const run = async (signal: AbortSignal) => {
    const lines: Array<string> = []
    let cursor: string | undefined
    do {
      const read = await page("/admin-ui/admin/audit-events", { query: { ...query, limit: eventsAtOnce } }, cursor, {
        signal
      })
      for (const event of read.rows) lines.push(JSON.stringify(event))
      cursor = read.next
      setCount(lines.length)
    } while (cursor !== undefined && lines.length < mostEvents)
    save(lines)
    notifications.show({
      message:
        cursor === undefined
          ? `${countText(lines.length)} events are saved.`
          : `The newest ${countText(lines.length)} events are saved; there are more. Narrow the range for them.`
    })
  }

  const toggle = () => {
    if (running.current !== undefined) {
      running.current.abort()
      return
    }
    const stop = new AbortController()
    running.current = stop
    setCount(0)
    run(stop.signal)
      .catch((cause: unknown) => {
        if (!stop.signal.aborted) notifications.show({ message: errorOf(cause).message, color: "red" })
      })
      .finally(() => {
        running.current = undefined
        setCount(undefined)
      })
  }

  return (
    <Button variant="default" leftSection={<IconDownload size={14} />} onClick={toggle}>
      {count === undefined ? "Export" : `Stop at ${countText(count)}`}
    </Button>
  )
}

const save = (lines: ReadonlyArray<string>) => {
  const address = URL.createObjectURL(new Blob([lines.join("\n"), "\n"], { type: "application/x-ndjson" }))
  const link = document.createElement("a")
  link.href = address
  link.download = `audit-${new Date().toISOString().slice(0, 10)}.jsonl`
  link.click()
  URL.revokeObjectURL(address)
}
