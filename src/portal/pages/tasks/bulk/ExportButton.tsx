import { Button, Progress } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { IconDownload } from "@tabler/icons-react"
import { useRef, useState } from "react"
import type { Task, TaskPage } from "../../../api/TaskTypes.ts"
import { callTasks } from "../../../api/tasks.ts"
import { countText } from "../../../shared/words/format.ts"
import { saveText } from "../../../shared/words/saveText.ts"
import styles from "./Bulk.module.css"
import { csvOf } from "./taskCsv.ts"

const pageSize = 200
/** What a browser and a spreadsheet carry well. */
const mostRows = 20_000

interface Props {
  readonly query: Readonly<Record<string, string>>
}

/** Reads all tasks of the search page by page, and makes one file of them. It can be stopped. */
export const ExportButton = ({ query }: Props) => {
  const [read, setRead] = useState<number>()
  const stop = useRef<AbortController>(null)
  const run = async () => {
    const stopper = new AbortController()
    stop.current = stopper
    const found: Array<Task> = []
    let cursor: string | undefined
    try {
      do {
        setRead(found.length)
        const page: TaskPage = await callTasks("GET", "/tasks", {
          query: { ...query, limit: pageSize, cursor },
          signal: stopper.signal
        })
        found.push(...page.tasks)
        cursor = page.next_cursor ?? undefined
      } while (cursor !== undefined && found.length < mostRows)
      saveText("tasks.csv", "text/csv", csvOf(found))
      const rest = cursor === undefined ? "" : ` There are more: the file ends after ${countText(mostRows)}.`
      notifications.show({ message: `${found.length} tasks are in the file.${rest}` })
    } catch (cause) {
      if (!stopper.signal.aborted)
        notifications.show({ color: "red", message: cause instanceof Error ? cause.message : String(cause) })
    }
    setRead(undefined)
  }
  return read === undefined ? (
    <Button variant="default" leftSection={<IconDownload size={14} />} onClick={() => void run()}>
      CSV of this view
    </Button>
  ) : (
    <Button variant="default" onClick={() => stop.current?.abort()}>
      Stop, {read} read <Progress className={styles.progress} value={100} animated aria-label="Export" />
    </Button>
  )
}
