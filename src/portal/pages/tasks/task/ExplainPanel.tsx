import type { UseQueryResult } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ApiError } from "../../../api/ApiError.ts"
import { useTasksApi } from "../../../api/queries.ts"
import type { Explanation, Queues } from "../../../api/TaskTypes.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { meaningOfVerdict, verdictWords } from "../../../shared/tasks/meanings.ts"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import styles from "./Task.module.css"

const mostChildren = 5

/** A paused queue has no consumers. The reader learns who paused it, and why. */
const Pause = ({ queue }: { readonly queue: string | null }) => {
  const queues = useTasksApi<Queues>("/queues", {}, { enabled: queue !== null })
  const paused = queues.data?.queues.find((one) => one.queue === queue)?.paused
  if (paused == null) return null
  return (
    <p>
      <StatusWord meaning="warning">paused</StatusWord> <ForeignText>{paused.by ?? "Somebody"}</ForeignText> has paused{" "}
      <Link to="/tasks/board">
        <ForeignText>{queue}</ForeignText>
      </Link>{" "}
      <When at={paused.paused_at} />: <ForeignText>{paused.reason}</ForeignText>. Nothing in it is done until it is
      resumed.
    </p>
  )
}

/** Why a task is not done, in the words of the server. */
export const ExplainPanel = ({ explanation }: { readonly explanation: UseQueryResult<Explanation, ApiError> }) => {
  const { data } = explanation
  return (
    <Panel query={explanation} height={64}>
      {data !== undefined && (
        <div className={styles.explain}>
          <p>
            <StatusWord meaning={meaningOfVerdict(data.verdict, data.status)}>{verdictWords(data.verdict)}</StatusWord>{" "}
            <ForeignText>{data.sentence}</ForeignText>
          </p>
          <p className={styles.beside}>
            {data.since !== null && <When at={data.since} />}
            {data.until !== null && (
              <span>
                next attempt <When at={data.until} />
              </span>
            )}
            {data.missing_evidence.length > 0 && <span>not known: {data.missing_evidence.join(", ")}</span>}
          </p>
          <Pause queue={data.queue_name} />
          {data.open_children.length > 0 && (
            <ul className={styles.children}>
              {data.open_children.slice(0, mostChildren).map(({ task_id, verdict }) => (
                <li key={task_id}>
                  <Link to="/tasks/$taskId" params={{ taskId: task_id }}>
                    <ForeignText>{task_id}</ForeignText>
                  </Link>{" "}
                  {verdictWords(verdict)}
                </li>
              ))}
              {data.open_children.length > mostChildren && (
                <li>and {data.open_children.length - mostChildren} more children that may not be done</li>
              )}
            </ul>
          )}
        </div>
      )}
    </Panel>
  )
}
