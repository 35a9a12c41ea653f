import { Link } from "@tanstack/react-router"
import { useTasksApi } from "../../../api/queries.ts"
import type { CancellationPage } from "../../../api/TaskTypes.ts"
import { countText } from "../../../shared/words/format.ts"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import styles from "../Tasks.module.css"
import { cancellationsPath, isOver, meaningOf, settledOf } from "./cancellation.ts"

/** Running ones change every second; that somebody else begins one is seen a little later. */
const refreshOf = ({ cancellations }: CancellationPage): number => (cancellations.every(isOver) ? 15_000 : 2_000)

const newest = 20

/** The newest cancellations, which say what one may take. */
export const useCancellations = () =>
  useTasksApi<CancellationPage>(cancellationsPath, { limit: newest }, { refreshAfter: refreshOf })

/** Leads to the cancellations that are not over. Shows nothing if there is none. */
export const RunningCancellations = () => {
  const running = (useCancellations().data?.cancellations ?? []).filter((job) => !isOver(job))
  if (running.length === 0) return null
  return (
    <p className={styles.cancelling}>
      {running.map((job) => (
        <Link key={job.cancellation_id} to="/tasks/cancellations/$id" params={{ id: job.cancellation_id }}>
          <StatusWord meaning={meaningOf(job)}>
            cancelling: {countText(settledOf(job))} of {countText(job.total)} are over
          </StatusWord>
        </Link>
      ))}
    </p>
  )
}
