import { Link } from "@tanstack/react-router"
import { useTasksApi } from "../../../api/queries.ts"
import type { Letter } from "../../../api/TaskTypes.ts"
import { taskPath } from "../../../api/tasks.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Empty } from "../../../shared/page/Empty.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { JsonTree } from "../../../shared/tasks/JsonTree.tsx"
import { bytesText } from "../../../shared/words/format.ts"
import { When } from "../../../shared/words/When.tsx"
import styles from "./Task.module.css"
import type { TaskData } from "./useTask.ts"

const sizeOf = (value: unknown): string => bytesText(new TextEncoder().encode(JSON.stringify(value) ?? "").length)

/** What the task was given, as far as it is stored, and what its statuses say that it gave. */
export const InputOutput = ({ task: { history, letters } }: { readonly task: TaskData }) => {
  const [latest] = letters.data?.items ?? []
  const results = (history.data?.events ?? [])
    .filter(({ result }) => result !== undefined && result !== null)
    .toReversed()
  return (
    <div className={styles.stack}>
      {latest === undefined ? (
        <Panel title="Input" query={letters} height={80}>
          <Empty>The message of a task is stored with its dead letter alone, and this task has none.</Empty>
        </Panel>
      ) : (
        <Input dlqId={latest.dlq_id} />
      )}
      <Panel
        title="Output"
        query={history}
        height={120}
        empty={results.length === 0 ? <Empty>No status of this task has a result.</Empty> : undefined}
      >
        <div className={styles.stack}>
          <p className={styles.caption}>What the hub removes from statuses, such as auth_token, is stored nowhere.</p>
          {results.map(({ event_id, result, status, timestamp }) => (
            <section key={event_id}>
              <p className={styles.caption}>
                <ForeignText>{status}</ForeignText>, <When at={timestamp} />, {sizeOf(result)}
              </p>
              <JsonTree value={result} label={`Result of ${status}`} />
            </section>
          ))}
        </div>
      </Panel>
    </div>
  )
}

const Input = ({ dlqId }: { readonly dlqId: string }) => {
  const letter = useTasksApi<Letter>(taskPath`/dlq/messages/${dlqId}`)
  const { data } = letter
  return (
    <Panel
      title="Input"
      note={
        data !== undefined && (
          <>
            as its{" "}
            <Link to="/dead-letters/$dlqId" params={{ dlqId }}>
              dead letter
            </Link>{" "}
            has it, {sizeOf(data.body)}
          </>
        )
      }
      query={letter}
      height={160}
    >
      {data !== undefined && <JsonTree value={data.body} label="Message" />}
    </Panel>
  )
}
