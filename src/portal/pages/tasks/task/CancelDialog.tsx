import { Button, Modal, Stack } from "@mantine/core"
import { useTasksApi, useTasksWrite } from "../../../api/queries.ts"
import type { Cancellation, CancelRequest } from "../../../api/TaskTypes.ts"
import { taskPath } from "../../../api/tasks.ts"
import { AuditLink } from "../../../shared/change/useTell.tsx"
import { ReasonDialog } from "../../../shared/dialogs/ReasonDialog.tsx"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { ErrorNote } from "../../../shared/page/ErrorNote.tsx"
import { type Meaning, StatusWord } from "../../../shared/words/StatusWord.tsx"

interface Props {
  readonly taskId: string
  readonly onClose: () => void
}

const meanings: Readonly<Record<CancelRequest["state"], Meaning>> = {
  requested: "waiting",
  interrupting: "working",
  cancelled: "good",
  ended: "idle"
}

const sentences: Readonly<Record<CancelRequest["state"], string>> = {
  requested: "No worker has met a message of the task since. The one that does will not handle it.",
  interrupting: "A worker has interrupted the handler, and waits for its end.",
  cancelled: "The worker has ended the task without a result.",
  ended: "The handler ended before the interruption had an effect."
}

/** Asks to cancel a task, and waits for the word of its worker. */
export const CancelDialog = ({ onClose, taskId }: Props) => {
  const cancel = useTasksWrite<Cancellation>()
  const withdraw = useTasksWrite<unknown>()
  const path = taskPath`/tasks/${taskId}/cancel`
  const withdrawPath = `${path}/withdraw`
  const isAsked = cancel.data !== undefined
  const request = useTasksApi<CancelRequest>(
    path,
    {},
    { enabled: isAsked && !withdraw.isSuccess, refreshAfter: () => 1_000 }
  )
  if (!isAsked)
    return (
      <ReasonDialog
        title="Cancel the task"
        action="Cancel the task"
        dismiss="Keep it"
        isDestructive
        placeholder="it was started by mistake"
        isBusy={cancel.isPending}
        error={cancel.error}
        onClose={onClose}
        onConfirm={(body) => cancel.mutate({ path, body })}
      >
        <p>
          The worker that has <ForeignText>{taskId}</ForeignText> interrupts its handler. If it waits, it is not begun.
        </p>
      </ReasonDialog>
    )
  const state = request.data?.state ?? (cancel.data.state === "not_held" ? "requested" : cancel.data.state)
  return (
    <Modal opened onClose={onClose} title="Cancel the task">
      <Stack gap="sm" aria-live="polite">
        {withdraw.isSuccess ? (
          <p>The request is taken back. The task goes on.</p>
        ) : (
          <p>
            <StatusWord meaning={meanings[state]}>{state}</StatusWord> {sentences[state]}
          </p>
        )}
        <AuditLink of={{ type: "tasks", id: withdraw.isSuccess ? withdrawPath : path }} />
        {withdraw.error !== null && <ErrorNote error={withdraw.error} />}
        {state === "requested" && !withdraw.isSuccess && (
          <Button
            variant="default"
            loading={withdraw.isPending}
            onClick={() => withdraw.mutate({ path: withdrawPath })}
          >
            Undo: take the request back
          </Button>
        )}
        <Button onClick={onClose}>Close</Button>
      </Stack>
    </Modal>
  )
}
