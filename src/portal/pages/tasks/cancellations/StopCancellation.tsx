import { Button } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { useState } from "react"
import { useTasksWrite } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import type { CancellationJob } from "../../../api/TaskTypes.ts"
import { taskPath } from "../../../api/tasks.ts"
import { ChangeDialog } from "../../../shared/dialogs/ChangeDialog.tsx"
import { countedText } from "../../../shared/words/format.ts"

/** Ends a cancellation before all of its tasks were asked for. */
export const StopCancellation = ({ job }: { readonly job: CancellationJob }) => {
  const mayOperate = useAllowed("tasks:operate")
  const [isAsked, setAsked] = useState(false)
  const stop = useTasksWrite<CancellationJob>()
  if (!mayOperate || (job.state !== "running" && !isAsked)) return null
  const close = () => {
    setAsked(false)
    stop.reset()
  }
  return (
    <>
      <Button variant="default" onClick={() => setAsked(true)}>
        Stop
      </Button>
      {isAsked && (
        <ChangeDialog
          title="Stop the cancellation"
          action="Stop it"
          isBusy={stop.isPending}
          error={stop.error}
          onClose={close}
          onConfirm={() =>
            stop.mutate(
              { path: taskPath`/tasks/cancellations/${job.cancellation_id}/stop` },
              {
                onSuccess: ({ remaining }) => {
                  close()
                  notifications.show({
                    message: `The cancellation is stopped. Not asked for: ${countedText(remaining, "task")}.`
                  })
                }
              }
            )
          }
        >
          <p>
            Tasks that were not asked for yet go on. Those that were asked for are still cancelled, and their answers
            are counted here.
          </p>
        </ChangeDialog>
      )}
    </>
  )
}
