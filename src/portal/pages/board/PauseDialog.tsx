import { Button } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { useTasksWrite } from "../../api/queries.ts"
import type { QueueView } from "../../api/TaskTypes.ts"
import { taskPath } from "../../api/tasks.ts"
import { ChangeDialog } from "../../shared/dialogs/ChangeDialog.tsx"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { shownText } from "../../shared/foreign/marks.ts"
import { ReasonDialog } from "../../shared/tasks/ReasonDialog.tsx"
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
  const resume = () =>
    write.mutate(
      { path: taskPath`/queues/${queue}/resume` },
      {
        onSuccess: ({ detail }) => {
          notifications.hide(`paused ${queue}`)
          done(`${queue} is resumed`, detail)
        }
      }
    )
  const done = (title: string, message: React.ReactNode, id?: string) => {
    notifications.show({ title, message, ...(id !== undefined && { id }) })
    onClose()
  }
  if (paused !== null)
    return (
      <ChangeDialog
        title={`Resume ${shownText(queue)}`}
        action="Resume"
        isBusy={write.isPending}
        error={write.error}
        onConfirm={resume}
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
      onConfirm={(why) =>
        write.mutate(
          { path: taskPath`/queues/${queue}/pause`, body: why },
          {
            onSuccess: ({ detail }) =>
              done(
                `${queue} is paused`,
                <>
                  <p>{detail.replace(withCurl, "")}</p>
                  <Button variant="default" size="compact-sm" onClick={resume}>
                    Undo
                  </Button>
                </>,
                `paused ${queue}`
              )
          }
        )
      }
    >
      <p>
        {consumers === null ? "Its consumers take" : countedText(consumers, "consumer takes", "consumers take")} no more
        messages. Those in work ({in_work}) are finished, and those that are ready ({ready ?? "?"}) wait.
      </p>
    </ReasonDialog>
  )
}
