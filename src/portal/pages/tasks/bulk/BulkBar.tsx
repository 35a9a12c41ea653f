import { Button, Group } from "@mantine/core"
import { useState } from "react"
import type { Task } from "../../../api/TaskTypes.ts"
import { saveText } from "../../../shared/words/saveText.ts"
import { BulkCancelDialog } from "./BulkCancelDialog.tsx"
import { BulkReplayDialog } from "./BulkReplayDialog.tsx"
import { csvOf } from "./taskCsv.ts"

interface Props {
  readonly rows: ReadonlyArray<Task>
  readonly selected: ReadonlySet<string>
  readonly onDone: () => void
}

/** What can be done with the selected tasks. */
export const BulkBar = ({ onDone, rows, selected }: Props) => {
  const [asked, setAsked] = useState<"cancel" | "replay">()
  const tasks = rows.filter(({ task_id }) => selected.has(task_id))
  const close = () => setAsked(undefined)
  return (
    <Group gap={6}>
      <strong>{tasks.length} selected</strong>
      <Button variant="default" onClick={() => setAsked("cancel")}>
        Cancel them
      </Button>
      <Button variant="default" onClick={() => setAsked("replay")}>
        Replay their dead letters
      </Button>
      <Button variant="default" onClick={() => saveText("tasks.csv", "text/csv", csvOf(tasks))}>
        Export
      </Button>
      <Button variant="subtle" color="gray" onClick={onDone}>
        Select none
      </Button>
      {asked === "cancel" && <BulkCancelDialog tasks={tasks} onClose={close} />}
      {asked === "replay" && <BulkReplayDialog tasks={tasks} onClose={close} />}
    </Group>
  )
}
