import { useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { ApiError } from "../../../api/ApiError.ts"
import { callTasks, taskPath, tasksPath } from "../../../api/tasks.ts"
import { failureOf } from "../../../shared/change/failure.ts"
import { useTell } from "../../../shared/change/useTell.tsx"
import { type OperationReason, ReasonDialog } from "../../../shared/dialogs/ReasonDialog.tsx"
import { countedText } from "../../../shared/words/format.ts"

interface Props {
  readonly ids: ReadonlyArray<string>
  /** Filled in already, such as why a replay is not needed. */
  readonly children?: React.ReactNode
  readonly onClose: () => void
  readonly onDone: () => void
}

/** Takes letters out of all lists, for 30 days with a way back. */
export const ArchiveDialog = ({ children, ids, onClose, onDone }: Props) => {
  const [archived, setArchived] = useState(0)
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<ApiError | null>(null)
  const client = useQueryClient()
  const tell = useTell()
  const run = async (body: OperationReason) => {
    setError(null)
    setBusy(true)
    const { done, failure, passed } = await archiveAll(ids, body, setArchived)
    setBusy(false)
    void client.invalidateQueries({ queryKey: [tasksPath] })
    if (done.length > 0) {
      tell({
        done: doneSentence(done.length, ids.length, passed),
        audit: { type: "tasks" },
        undo: () => takeBack(done),
        undone: `${countedText(done.length, "letter is", "letters are")} open again.`
      })
    }
    setError(failure)
    if (failure === null) onDone()
  }
  const what = ids.length === 1 ? "the letter" : `${ids.length} letters`
  return (
    <ReasonDialog
      title={`Archive ${what}`}
      action={isBusy ? `${archived} archived` : `Archive ${what}`}
      placeholder="a test order"
      isBusy={isBusy}
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

interface Archived {
  readonly done: ReadonlyArray<string>
  /** The number of letters that were passed over because they were archived already, or being replayed. */
  readonly passed: number
  readonly failure: ApiError | null
}

/** Archives one after the other until a failure. A letter whose state forbids it does not hold up the others. */
/** Goes on after a letter that cannot be taken back, and then says how many there are. */
const takeBack = async (ids: ReadonlyArray<string>): Promise<void> => {
  const failures: Array<ApiError> = []
  for (const id of ids)
    await callTasks("POST", taskPath`/dlq/messages/${id}/unarchive`).catch((cause) => failures.push(failureOf(cause)))
  const [first] = failures
  if (first !== undefined)
    throw new ApiError(
      first.status,
      first.code,
      `${failures.length} of ${countedText(ids.length, "letter")} could not be taken back. ${first.message}`
    )
}

const archiveAll = async (
  ids: ReadonlyArray<string>,
  body: OperationReason,
  onProgress: (archived: number) => void
): Promise<Archived> => {
  const done: Array<string> = []
  let refused: ApiError | null = null
  onProgress(0)
  for (const id of ids) {
    try {
      await callTasks("POST", taskPath`/dlq/messages/${id}/archive`, { body })
      done.push(id)
      onProgress(done.length)
    } catch (cause) {
      const failure = failureOf(cause)
      if (failure.status !== 409) return { done, passed: 0, failure }
      refused = failure
    }
  }
  // with none archived, the refusal is all that there is to say
  return { done, passed: ids.length - done.length, failure: done.length === 0 ? refused : null }
}

const doneSentence = (done: number, all: number, passed: number): string => {
  if (all === 1) return "The letter is archived."
  const rest = passed === 0 ? "" : ` ${countedText(passed, "was", "were")} archived already, or being replayed.`
  return `${done === all ? all : `${done} of ${all}`} letters are archived.${rest}`
}
