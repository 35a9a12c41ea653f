import { Button, Group } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import { useTasksApi } from "../../api/queries.ts"
import type { Explanation, History } from "../../api/TaskTypes.ts"
import { taskPath } from "../../api/tasks.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { meaningOfTaskStatus } from "../../shared/tasks/meanings.ts"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"
import styles from "./Tasks.module.css"
import { ExplainPanel } from "./task/ExplainPanel.tsx"

const mostStatuses = 12

/** A task beside the list: why it is not done, and what its latest statuses say. */
export const TaskSummary = ({ taskId }: { readonly taskId: string }) => {
  const explanation = useTasksApi<Explanation>(taskPath`/executions/${taskId}/explain`)
  const history = useTasksApi<History>("/history", { task_id: taskId })
  const dlqId = explanation.data?.dlq_id
  const latest = (history.data?.events ?? []).toReversed().slice(0, mostStatuses)
  return (
    <div className={styles.summary}>
      <p className={styles.id}>
        <ForeignText>{taskId}</ForeignText>
      </p>
      <ExplainPanel explanation={explanation} />
      <Group gap={6}>
        <Button renderRoot={(props) => <Link {...props} to="/tasks/$taskId" params={{ taskId }} />}>
          Open the task
        </Button>
        {dlqId != null && (
          <Button
            variant="default"
            renderRoot={(props) => <Link {...props} to="/dead-letters/$dlqId" params={{ dlqId }} />}
          >
            Its dead letter
          </Button>
        )}
      </Group>
      <Panel title="Latest statuses" query={history} height={180}>
        <ol className={styles.statuses}>
          {latest.map(({ event_id, message, status, timestamp }) => (
            <li key={event_id}>
              <StatusWord meaning={meaningOfTaskStatus(status)}>
                <ForeignText>{status}</ForeignText>
              </StatusWord>
              <When at={timestamp} />
              <ForeignText>{message}</ForeignText>
            </li>
          ))}
        </ol>
      </Panel>
    </div>
  )
}
