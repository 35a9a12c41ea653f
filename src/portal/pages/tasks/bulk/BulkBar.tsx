import { Button, Group } from "@mantine/core"
import { useState } from "react"
import type { Task } from "../../../api/TaskTypes.ts"
import type { Column } from "../../../shared/table/column.ts"
import { csvOf } from "../../../shared/table/rowsCsv.ts"
import { countedText, countText } from "../../../shared/words/format.ts"
import { saveText } from "../../../shared/words/saveText.ts"
import { useCancellations } from "../cancellations/RunningCancellations.tsx"
import { BulkCancelDialog } from "./BulkCancelDialog.tsx"
import { BulkReplayDialog } from "./BulkReplayDialog.tsx"
import { CancelMatchingDialog } from "./CancelMatchingDialog.tsx"

interface Props {
  readonly rows: ReadonlyArray<Task>
  /** The columns of a file of the selected tasks. */
  readonly columns: ReadonlyArray<Column<Task>>
  readonly selected: ReadonlySet<string>
  /** The search of the list. */
  readonly query: Readonly<Record<string, string>>
  readonly onDone: () => void
}

/** Offers the actions for the selected tasks, and for all that match. */
export const BulkBar = ({ columns, onDone, query, rows, selected }: Props) => {
  const [asked, setAsked] = useState<"cancel" | "cancel matching" | "replay">()
  const tasks = rows.filter(({ task_id }) => selected.has(task_id))
  const most = useCancellations().data?.task_ids_at_most ?? tasks.length
  const close = () => setAsked(undefined)
  return (
    <Group gap={6} role="toolbar" aria-label="Selected tasks">
      <strong>{tasks.length} selected</strong>
      {tasks.length > most ? (
        <span>at most {countText(most)} are cancelled by their ids</span>
      ) : (
        <Button variant="default" onClick={() => setAsked("cancel")}>
          Cancel them
        </Button>
      )}
      <Button variant="default" onClick={() => setAsked("cancel matching")}>
        Cancel all that match
      </Button>
      <Button variant="default" onClick={() => setAsked("replay")}>
        Replay their dead letters
      </Button>
      <Button variant="default" onClick={() => saveText("tasks.csv", "text/csv", csvOf(tasks, columns))}>
        Export
      </Button>
      <Button variant="subtle" color="gray" onClick={onDone}>
        Select none
      </Button>
      {asked === "cancel" && (
        <BulkCancelDialog
          selection={{ task_ids: tasks.map(({ task_id }) => task_id) }}
          what={countedText(tasks.length, "task")}
          onClose={close}
        >
          {null}
        </BulkCancelDialog>
      )}
      {asked === "cancel matching" && <CancelMatchingDialog query={query} onClose={close} />}
      {asked === "replay" && <BulkReplayDialog tasks={tasks} onClose={close} />}
    </Group>
  )
}
