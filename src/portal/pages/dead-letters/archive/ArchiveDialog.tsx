import { useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { ApiError } from "../../../api/ApiError.ts"
import { callTasks, taskPath, tasksPath } from "../../../api/tasks.ts"
import { type OperationReason, ReasonDialog } from "../../../shared/tasks/ReasonDialog.tsx"
import { useArchivedNote } from "./useArchivedNote.tsx"

interface Props {
  readonly ids: ReadonlyArray<string>
  /** Filled in already, such as why a replay is not needed. */
  readonly children?: React.ReactNode
  readonly onClose: () => void
  readonly onDone: () => void
}

/** Takes letters out of all lists, for 30 days with a way back. */
export const ArchiveDialog = ({ children, ids, onClose, onDone }: Props) => {
  const [done, setDone] = useState<number>()
  const [error, setError] = useState<ApiError | null>(null)
  const client = useQueryClient()
  const showNote = useArchivedNote()
  const run = async (body: OperationReason) => {
    const archived: Array<string> = []
    setError(null)
    setDone(0)
    for (const id of ids) {
      try {
        await callTasks("POST", taskPath`/dlq/messages/${id}/archive`, { body })
        archived.push(id)
        setDone(archived.length)
      } catch (cause) {
        // one that is archived already, or being replayed, does not hold up the others
        if (cause instanceof ApiError && cause.status === 409 && ids.length > 1) continue
        setError(cause instanceof ApiError ? cause : new ApiError(0, "failed", String(cause)))
        break
      }
    }
    setDone(undefined)
    void client.invalidateQueries({ queryKey: [tasksPath] })
    if (archived.length > 0) showNote(archived)
    if (archived.length === ids.length || (archived.length > 0 && ids.length > 1)) onDone()
  }
  const what = ids.length === 1 ? "the letter" : `${ids.length} letters`
  return (
    <ReasonDialog
      title={`Archive ${what}`}
      action={done === undefined ? `Archive ${what}` : `${done} archived`}
      placeholder="a test order"
      isBusy={done !== undefined}
      error={error}
      onClose={onClose}
      onConfirm={(why) => void run(why)}
    >
      {children}
      <p>
        An archived letter is in no list, count or group, and its message leaves the dead-letter queue. It can be taken
        back from the archive until the server deletes it.
      </p>
    </ReasonDialog>
  )
}
