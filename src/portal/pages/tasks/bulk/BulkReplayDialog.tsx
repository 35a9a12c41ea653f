import { Modal } from "@mantine/core"
import type { Task } from "../../../api/TaskTypes.ts"
import { Panel } from "../../../shared/page/Panel.tsx"
import { ReplayPlanDialog } from "../../../shared/tasks/ReplayPlanDialog.tsx"
import { openLetters, useReplayCount } from "../../../shared/tasks/useReplayCount.ts"
import { countedText } from "../../../shared/words/format.ts"

interface Props {
  readonly tasks: ReadonlyArray<Task>
  readonly onClose: () => void
}

/** Plans the replay of the open dead letters of the tasks, which the server finds. */
export const BulkReplayDialog = ({ onClose, tasks }: Props) => {
  const selection = { task_ids: tasks.map(({ task_id }) => task_id) }
  const count = useReplayCount(selection)
  if (count.data !== undefined && count.data.total > 0)
    return (
      <ReplayPlanDialog selection={selection} onClose={onClose}>
        <p>
          {countedText(tasks.length, "task has", "tasks have")} {openLetters(count.data)}. Each becomes a message of its
          queue again, and its task gets a new attempt.
        </p>
      </ReplayPlanDialog>
    )
  return (
    <Modal opened onClose={onClose} title="Replay" size="lg">
      <Panel query={count} height={60}>
        <p>None of these tasks has an open dead letter, so there is nothing to replay.</p>
      </Panel>
    </Modal>
  )
}
