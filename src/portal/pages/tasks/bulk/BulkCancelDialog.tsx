import { useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { ApiError } from "../../../api/ApiError.ts"
import type { Cancellation, Task } from "../../../api/TaskTypes.ts"
import { callTasks, taskPath, tasksPath } from "../../../api/tasks.ts"
import { type OperationReason, ReasonDialog } from "../../../shared/dialogs/ReasonDialog.tsx"
import { BulkResults, type Result } from "./BulkResults.tsx"
import { inTurn } from "./inTurn.ts"

interface Props {
  readonly tasks: ReadonlyArray<Task>
  readonly onClose: () => void
}

/** Cancels the tasks one by one, and shows what the worker of each has answered. */
export const BulkCancelDialog = ({ onClose, tasks }: Props) => {
  const [results, setResults] = useState<ReadonlyArray<Result>>()
  const [isEnded, setEnded] = useState(false)
  const [stopper] = useState(() => new AbortController())
  const client = useQueryClient()
  const run = async (why: OperationReason) => {
    setResults([])
    const cancel = async ({ task_id }: Task) => {
      const result = await cancelOne(task_id, why)
      setResults((before) => [...(before ?? []), result])
    }
    await inTurn(tasks, cancel, stopper.signal)
    setEnded(true)
    void client.invalidateQueries({ queryKey: [tasksPath] })
  }
  if (results !== undefined)
    return (
      <BulkResults
        title="Cancel tasks"
        total={tasks.length}
        results={results}
        isEnded={isEnded}
        onStop={() => stopper.abort()}
        onClose={onClose}
      />
    )
  return (
    <ReasonDialog
      title={`Cancel ${tasks.length} tasks`}
      action={`Cancel ${tasks.length} tasks`}
      placeholder="a wrong campaign"
      isBusy={false}
      error={null}
      onClose={onClose}
      onConfirm={(why) => void run(why)}
    >
      <p>Workers interrupt what runs, and do not begin what waits. Tasks that have ended stay as they are.</p>
    </ReasonDialog>
  )
}

const cancelOne = async (id: string, why: OperationReason): Promise<Result> => {
  try {
    const { detail, state } = await callTasks<Cancellation>("POST", taskPath`/tasks/${id}/cancel`, { body: why })
    return { id, meaning: state === "cancelled" ? "good" : "waiting", word: state.replaceAll("_", " "), detail }
  } catch (cause) {
    const status = cause instanceof ApiError ? cause.status : 0
    const detail = cause instanceof Error ? cause.message : String(cause)
    return { id, meaning: status === 409 ? "idle" : "bad", word: status === 409 ? "has ended" : "refused", detail }
  }
}
