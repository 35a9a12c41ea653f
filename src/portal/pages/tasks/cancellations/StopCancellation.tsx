import { Button } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { useTasksWrite } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import type { CancellationJob } from "../../../api/TaskTypes.ts"
import { taskPath } from "../../../api/tasks.ts"
import { useTell } from "../../../shared/change/useTell.tsx"
import { countedText } from "../../../shared/words/format.ts"

/**
 * Ends a cancellation before all of its tasks were asked for. It asks nothing: the job goes on while a person reads, and
 * what it did not reach can be cancelled again.
 */
export const StopCancellation = ({ job }: { readonly job: CancellationJob }) => {
  const mayOperate = useAllowed("tasks:operate")
  const stop = useTasksWrite<CancellationJob>()
  const tell = useTell()
  const path = taskPath`/tasks/cancellations/${job.cancellation_id}/stop`
  if (!mayOperate || job.state !== "running") return null
  return (
    <Button
      color="red"
      loading={stop.isPending}
      onClick={() =>
        stop.mutate(
          { path },
          {
            onSuccess: ({ remaining }) =>
              tell({
                done: `The cancellation is stopped. Not asked for: ${countedText(remaining, "task")}.`,
                audit: { type: "tasks", id: path }
              }),
            onError: ({ message, status }) =>
              notifications.show({
                color: status === 409 ? "gray" : "red",
                message: status === 409 ? "It was too late to stop it: all of its tasks were asked for." : message
              })
          }
        )
      }
    >
      Stop
    </Button>
  )
}
