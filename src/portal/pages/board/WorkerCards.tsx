import { Progress } from "@mantine/core"
import type { UseQueryResult } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ApiError } from "../../api/ApiError.ts"
import type { WorkerReport, Workers } from "../../api/TaskTypes.ts"
import { tasksPath } from "../../api/tasks.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { curlOf } from "../../shared/words/CopyAs.tsx"
import { countedText, durationText } from "../../shared/words/format.ts"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"
import styles from "./Board.module.css"
import { isLong } from "./longRunning.ts"

const none = "No worker reports itself. Workers of the roles do; your own need RedisWorkControl."

/** The worker processes, and what they run. */
export const WorkerCards = ({ workers }: { readonly workers: UseQueryResult<Workers, ApiError> }) => {
  const found = workers.data?.workers ?? []
  return (
    <div className={styles.workers}>
      <Panel
        title="Workers"
        note={workers.data === undefined ? undefined : `${countedText(found.length, "worker")}`}
        query={workers}
        height={160}
        empty={
          found.length === 0 ? <Empty command={curlOf({ address: `${tasksPath}/workers` })}>{none}</Empty> : undefined
        }
      >
        <ul className={styles.cards}>
          {found.map((worker) => (
            <WorkerCard key={worker.worker} worker={worker} />
          ))}
        </ul>
      </Panel>
    </div>
  )
}

const mostRunning = 5

const WorkerCard = ({ worker: { consumers, host, pid, started_at, version } }: { readonly worker: WorkerReport }) => {
  const most = consumers.reduce((sum, { concurrency }) => sum + concurrency, 0)
  const used = consumers.reduce((sum, { in_work }) => sum + in_work, 0)
  const running = consumers
    .flatMap((consumer) => consumer.running.map((task) => ({ ...task, queue: consumer.queue })))
    .sort((one, other) => (one.started_at < other.started_at ? -1 : 1))
  return (
    <li className={styles.card}>
      <header>
        <strong>
          <ForeignText>{host}</ForeignText>
        </strong>
        <span className={styles.about}>
          process {pid}, version {version}, started <When at={started_at} />
        </span>
      </header>
      <div className={styles.used}>
        <Progress value={most === 0 ? 0 : (used / most) * 100} aria-label={`${used} of ${most} places are in use`} />
        <span className={styles.about}>
          {used} of {most} places in use
        </span>
      </div>
      <ul className={styles.consumers} aria-label="Consumers">
        {consumers.map(({ concurrency, in_work, name, paused, queue }) => (
          <li key={`${name} ${queue}`}>
            <ForeignText>{name}</ForeignText>
            <span>
              {in_work}/{concurrency}
            </span>
            {paused && <StatusWord meaning="idle">stopped</StatusWord>}
          </li>
        ))}
      </ul>
      {running.length > 0 && (
        <ul className={styles.running} aria-label="Running tasks, the longest first">
          {running.slice(0, mostRunning).map(({ attempt, queue, started_at, task_id, usual_ms }) => (
            <li key={`${task_id} ${queue}`}>
              <Link to="/tasks/$taskId" params={{ taskId: task_id }}>
                <ForeignText>{task_id}</ForeignText>
              </Link>
              <span>
                {attempt > 0 && `retry ${attempt}, `}
                <When at={started_at} />
              </span>
              {isLong(Date.now() - Date.parse(started_at), usual_ms) && (
                <StatusWord meaning="warning">
                  long{usual_ms !== undefined && `: usually ${durationText(usual_ms)}`}
                </StatusWord>
              )}
            </li>
          ))}
          {running.length > mostRunning && <li>and {running.length - mostRunning} more</li>}
        </ul>
      )}
    </li>
  )
}
