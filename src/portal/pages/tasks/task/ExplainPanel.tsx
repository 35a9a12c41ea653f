import type { UseQueryResult } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ApiError } from "../../../api/ApiError.ts"
import type { Explanation } from "../../../api/TaskTypes.ts"
import { Panel } from "../../../shared/page/Panel.tsx"
import { meaningOfVerdict, verdictWords } from "../../../shared/tasks/meanings.ts"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import styles from "./Task.module.css"

const mostChildren = 5

/** Why a task is not done, in the words of the server. */
export const ExplainPanel = ({ explanation }: { readonly explanation: UseQueryResult<Explanation, ApiError> }) => {
  const { data } = explanation
  return (
    <Panel query={explanation} height={64}>
      {data !== undefined && (
        <div className={styles.explain}>
          <p>
            <StatusWord meaning={meaningOfVerdict(data.verdict, data.status)}>{verdictWords(data.verdict)}</StatusWord>{" "}
            <bdi>{data.sentence}</bdi>
          </p>
          <p className={styles.beside}>
            {data.since !== null && (
              <span>
                since <When at={data.since} />
              </span>
            )}
            {data.until !== null && (
              <span>
                next attempt <When at={data.until} />
              </span>
            )}
            {data.missing_evidence.length > 0 && <span>not known: {data.missing_evidence.join(", ")}</span>}
          </p>
          {data.open_children.length > 0 && (
            <ul className={styles.children}>
              {data.open_children.slice(0, mostChildren).map(({ task_id, verdict }) => (
                <li key={task_id}>
                  <Link to="/tasks/$taskId" params={{ taskId: task_id }}>
                    <bdi>{task_id}</bdi>
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
