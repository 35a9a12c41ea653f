import { useTasksWrite } from "../../api/queries.ts"
import { useSession } from "../../api/session.ts"
import type { QueueView } from "../../api/TaskTypes.ts"
import { callTasks, taskPath } from "../../api/tasks.ts"
import { useTell } from "../../shared/change/useTell.tsx"
import { ChangeDialog } from "../../shared/dialogs/ChangeDialog.tsx"
import { type OperationReason, ReasonDialog } from "../../shared/dialogs/ReasonDialog.tsx"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { shownText } from "../../shared/foreign/marks.ts"
import { countedText } from "../../shared/words/format.ts"
import { When } from "../../shared/words/When.tsx"

interface Props {
  readonly queue: QueueView
  readonly onClose: () => void
}

interface Changed {
  readonly detail: string
}

/** The API says what to call next; a person has a button. */
const withCurl = / POST \S+ ends the pause\./

/** Pauses a queue for a reason, or ends its pause. */
export const PauseDialog = ({ onClose, queue: { consumers, in_work, paused, queue, ready } }: Props) => {
  const write = useTasksWrite<Changed>()
  const tell = useTell()
  const session = useSession()
  const by = session.state === "signed-in" ? session.who.name : null
  const pausePath = taskPath`/queues/${queue}/pause`
  const resumePath = taskPath`/queues/${queue}/resume`
  const audit = { type: "tasks" }
  const resume = (why: OperationReason) =>
    write.mutate(
      { path: resumePath },
      {
        onSuccess: ({ detail }) => {
          tell({
            done: `${queue} is resumed. ${detail}`,
            audit,
            undo: () => callTasks("POST", pausePath, { body: why }),
            undone: `${queue} is paused again.`
          })
          onClose()
        }
      }
    )
  const pause = (why: OperationReason) =>
    write.mutate(
      { path: pausePath, body: why },
      {
        onSuccess: ({ detail }) => {
          tell({
            done: `${queue} is paused. ${detail.replace(withCurl, "")}`,
            audit,
            undo: () => callTasks("POST", resumePath),
            undone: `${queue} is resumed.`
          })
          onClose()
        }
      }
    )
  if (paused !== null)
    return (
      <ChangeDialog
        title={`Resume ${shownText(queue)}`}
        action="Resume"
        isBusy={write.isPending}
        error={write.error}
        onConfirm={() => resume({ reason: paused.reason, by })}
        onClose={onClose}
      >
        <p>
          <ForeignText>{paused.by ?? "Somebody"}</ForeignText> has paused it <When at={paused.paused_at} />:{" "}
          <ForeignText>{paused.reason}</ForeignText>
        </p>
        <p>
          {ready === null ? "Some messages wait" : countedText(ready, "message waits", "messages wait")}, and workers
          take them again.
        </p>
      </ChangeDialog>
    )
  return (
    <ReasonDialog
      title={`Pause ${shownText(queue)}`}
      action="Pause"
      placeholder="database maintenance until 04:00"
      isBusy={write.isPending}
      error={write.error}
      onClose={onClose}
      onConfirm={pause}
    >
      <p>
        {consumers === null ? "Its consumers take" : countedText(consumers, "consumer takes", "consumers take")} no more
        messages. Those in work ({in_work}) are finished, and those that are ready ({ready ?? "?"}) wait.
      </p>
    </ReasonDialog>
  )
}
