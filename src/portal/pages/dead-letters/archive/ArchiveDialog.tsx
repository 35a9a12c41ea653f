import { useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { ApiError } from "../../../api/ApiError.ts"
import { failureOf } from "../../../api/failure.ts"
import type { LetterSelection, RepairedMany } from "../../../api/TaskTypes.ts"
import { callTasks, tasksPath } from "../../../api/tasks.ts"
import { useTell } from "../../../shared/change/useTell.tsx"
import { type OperationReason, ReasonDialog } from "../../../shared/dialogs/ReasonDialog.tsx"
import { countedText } from "../../../shared/words/format.ts"

interface Archived extends RepairedMany {
  /** More letters match than one request takes. */
  readonly truncated: boolean
}

interface Props {
  /** Letters by their ids, or all that match when the request arrives. */
  readonly selection: LetterSelection
  /** Filled in already, such as why a replay is not needed. */
  readonly children?: React.ReactNode
  readonly onClose: () => void
  readonly onDone: () => void
}

/** Takes letters out of all lists, for 30 days with a way back. */
export const ArchiveDialog = ({ children, onClose, onDone, selection }: Props) => {
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<ApiError | null>(null)
  const client = useQueryClient()
  const tell = useTell()
  const run = async (why: OperationReason) => {
    setError(null)
    setBusy(true)
    try {
      const archived = await callTasks<Archived>("POST", "/dlq/messages/archive", { body: { ...selection, ...why } })
      const { changed, ids } = archived
      if (changed > 0)
        tell({
          done: doneSentence(archived),
          audit: { type: "tasks" },
          undo: () => takeBack(ids),
          undone: `${countedText(changed, "letter is", "letters are")} open again.`
        })
      const failure = failureIn(archived)
      setError(failure)
      if (failure === null) onDone()
    } catch (cause) {
      setError(failureOf(cause))
    }
    setBusy(false)
    void client.invalidateQueries({ queryKey: [tasksPath] })
  }
  const what =
    "filter" in selection
      ? "all that match"
      : selection.ids.length === 1
        ? "the letter"
        : `${selection.ids.length} letters`
  return (
    <ReasonDialog
      title={`Archive ${what}`}
      action={`Archive ${what}`}
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

/** Says why it must be tried again: the server has stopped, or has archived nothing. */
const failureIn = ({ changed, problem, refused }: RepairedMany): ApiError | null => {
  if (problem !== null) return new ApiError(503, "http_503", problem)
  if (changed > 0) return null
  return new ApiError(409, "http_409", refused[0]?.detail ?? "No letter matches any more.")
}

const takeBack = async (ids: ReadonlyArray<string>): Promise<void> => {
  const { problem, refused } = await callTasks<RepairedMany>("POST", "/dlq/messages/unarchive", { body: { ids } })
  const [first] = refused
  if (problem !== null) throw new ApiError(503, "http_503", problem)
  if (first !== undefined)
    throw new ApiError(
      409,
      "http_409",
      `${refused.length} of ${countedText(ids.length, "letter")} could not be taken back. ${first.detail}`
    )
}

const doneSentence = ({ changed, refused, truncated }: Archived): string => {
  const all = changed + refused.length
  if (all === 1) return "The letter is archived."
  if (truncated) return `${changed} letters are archived, and more match: archive again.`
  const rest =
    refused.length === 0 ? "" : ` ${countedText(refused.length, "letter")} could not be: ${refused[0]?.detail}`
  return `${changed === all ? all : `${changed} of ${all}`} letters are archived.${rest}`
}
