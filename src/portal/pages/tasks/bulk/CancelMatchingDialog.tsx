import { useTasksApi } from "../../../api/queries.ts"
import type { TaskCounts, TaskPage } from "../../../api/TaskTypes.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { ErrorNote } from "../../../shared/page/ErrorNote.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { countedText, countText } from "../../../shared/words/format.ts"
import { searchOf } from "../cancellations/cancellation.ts"
import { useCancellations } from "../cancellations/RunningCancellations.tsx"
import styles from "./Bulk.module.css"
import { BulkCancelDialog } from "./BulkCancelDialog.tsx"

interface Props {
  readonly query: Readonly<Record<string, string>>
  readonly onClose: () => void
}

const examples = 5

/** Shows how many tasks of a search have not ended, and some of them, before all of them are cancelled. */
export const CancelMatchingDialog = ({ onClose, query }: Props) => {
  const open = { ...query, ended: query["ended"] ?? "false" }
  const counts = useTasksApi<TaskCounts>("/tasks/counts", open)
  const some = useTasksApi<TaskPage>("/tasks", { ...open, limit: examples })
  const most = useCancellations().data?.tasks_at_most
  return (
    <BulkCancelDialog selection={{ query: open }} what="all that match" onClose={onClose}>
      <p>
        <ForeignText>{searchOf(open)}</ForeignText>
      </p>
      {counts.error !== null && <ErrorNote error={counts.error} onRetry={() => counts.refetch()} />}
      <p aria-live="polite">{counts.data === undefined ? "\u00a0" : countSentence(counts.data, most)}</p>
      <Panel
        title="The newest of them"
        query={some}
        height={100}
        empty={some.data?.tasks.length === 0 ? <p>None.</p> : undefined}
      >
        <ul className={styles.examples}>
          {some.data?.tasks.map(({ status, task_id, task_type }) => (
            <li key={task_id}>
              <ForeignText>{task_id}</ForeignText> <ForeignText>{`${task_type ?? "no type"}, ${status}`}</ForeignText>
            </li>
          ))}
        </ul>
      </Panel>
    </BulkCancelDialog>
  )
}

const countSentence = ({ counts, looked }: TaskCounts, most: number | undefined): string => {
  const count = counts.reduce((sum, { count }) => sum + count, 0)
  const isLeast = !looked.complete || counts.some(({ at_least }) => at_least)
  const match = `${isLeast ? "At least " : ""}${countedText(count, "task matches", "tasks match")} and ${count === 1 ? "has" : "have"} not ended.`
  return most === undefined || (count <= most && !isLeast)
    ? match
    : `${match} At most ${countText(most)} are cancelled, the newest ones. Cancel again for the rest.`
}
