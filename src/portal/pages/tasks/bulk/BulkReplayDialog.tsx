import { Modal } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import type { ApiError } from "../../../api/ApiError.ts"
import type { LetterPage, Task } from "../../../api/TaskTypes.ts"
import { callTasks, tasksPath } from "../../../api/tasks.ts"
import { Panel } from "../../../shared/page/Panel.tsx"
import { ReplayPlanDialog } from "../../../shared/tasks/ReplayPlanDialog.tsx"
import { inTurn } from "./inTurn.ts"

interface Props {
  readonly tasks: ReadonlyArray<Task>
  readonly onClose: () => void
}

/** Looks for the open dead letters of the tasks, and plans their replay. */
export const BulkReplayDialog = ({ onClose, tasks }: Props) => {
  const letters = useQuery<ReadonlyArray<string>, ApiError>({
    queryKey: [tasksPath, "letters of tasks", tasks.map(({ task_id }) => task_id)],
    queryFn: ({ signal }) => lettersOf(tasks, signal),
    staleTime: 0
  })
  const ids = letters.data
  if (ids !== undefined && ids.length > 0)
    return (
      <ReplayPlanDialog selection={{ ids }} onClose={onClose}>
        <p>
          {ids.length} open dead letters of {tasks.length} tasks. Each becomes a message of its queue again, and its
          task gets a new attempt.
        </p>
      </ReplayPlanDialog>
    )
  return (
    <Modal opened onClose={onClose} title="Replay" size="lg">
      <Panel query={letters} height={60}>
        <p>None of these tasks has an open dead letter, so there is nothing to replay.</p>
      </Panel>
    </Modal>
  )
}

const lettersOf = async (tasks: ReadonlyArray<Task>, signal: AbortSignal): Promise<ReadonlyArray<string>> => {
  const found: Array<string> = []
  await inTurn(tasks, async ({ task_id }) => {
    const { items } = await callTasks<LetterPage>("GET", "/dlq/messages", {
      query: { task_id, state: "dead_lettered", limit: 200 },
      signal
    })
    found.push(...items.map(({ dlq_id }) => dlq_id))
  })
  return found
}
