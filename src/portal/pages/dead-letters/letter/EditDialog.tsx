import { notifications } from "@mantine/notifications"
import { useNavigate } from "@tanstack/react-router"
import { useTasksWrite } from "../../../api/queries.ts"
import type { Edited, Letter, PayloadFit } from "../../../api/TaskTypes.ts"
import { taskPath } from "../../../api/tasks.ts"
import { ChangeDialog } from "../../../shared/dialogs/ChangeDialog.tsx"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { flatten } from "../../../shared/tasks/flatten.ts"
import { useFollowOutcome } from "../../../shared/tasks/useFollowOutcome.tsx"
import { FieldDiff } from "../../../shared/words/FieldDiff.tsx"
import type { Part } from "./editing.ts"
import { Mistakes } from "./Mistakes.tsx"
import { PayloadFitNote } from "./PayloadFitNote.tsx"

interface Props {
  readonly letter: Letter
  readonly part: Part
  readonly before: unknown
  readonly after: unknown
  readonly fit: PayloadFit
  readonly onClose: () => void
}

/** Replaces the letter with the edited one and replays that. Its page shows what becomes of it. */
export const EditDialog = ({ after, before, fit, letter, onClose, part }: Props) => {
  const edit = useTasksWrite<Edited>()
  const follow = useFollowOutcome()
  const navigate = useNavigate()
  const { dlq_id, source_queue_name, task_id } = letter
  const hasMistakes = (edit.error?.fields.length ?? 0) > 0
  /** The page of the old letter may be read again and close the dialog before the answer is here. */
  const replay = async () => {
    const path = taskPath`/dlq/messages/${dlq_id}/edits`
    const sent = edit.mutateAsync({ path, body: { [part]: after } })
    const edited = await sent.catch(() => undefined)
    if (edited === undefined) return
    onClose()
    if (edited.problem === null) follow({ dlqId: edited.dlq_id, of: `Edited ${task_id ?? dlq_id}`, operation: path })
    else
      notifications.show({
        color: "red",
        autoClose: false,
        title: "The edited record is stored, and not replayed",
        message: edited.problem
      })
    void navigate({ to: "/dead-letters/$dlqId", params: { dlqId: edited.dlq_id } })
  }
  return (
    <ChangeDialog
      title="Replay the edited message"
      action="Replay edited"
      isBusy={edit.isPending}
      error={hasMistakes ? null : edit.error}
      onClose={onClose}
      onConfirm={() => void replay()}
    >
      <FieldDiff isJson before={flatten(before)} after={flatten(after)} />
      <p>
        A new record with this message takes the place of the old one, and goes to{" "}
        <ForeignText>{source_queue_name}</ForeignText> at once. The old one stays as it is, and cannot be replayed any
        more.
      </p>
      <PayloadFitNote fit={fit} />
      {fit.fields.length > 0 && <p>It can be replayed nevertheless. A worker of that version will refuse it again.</p>}
      {hasMistakes && edit.error !== null && <Mistakes error={edit.error} />}
    </ChangeDialog>
  )
}
