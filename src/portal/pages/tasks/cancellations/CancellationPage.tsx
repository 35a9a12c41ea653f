import { Progress } from "@mantine/core"
import { getRouteApi, Link } from "@tanstack/react-router"
import { useTasksApi } from "../../../api/queries.ts"
import type { CancellationJobDetail } from "../../../api/TaskTypes.ts"
import { taskPath, tasksPath } from "../../../api/tasks.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { LinkButton } from "../../../shared/links/LinkButton.tsx"
import { Empty } from "../../../shared/page/Empty.tsx"
import { PageHeader } from "../../../shared/page/PageHeader.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { UnreadPage } from "../../../shared/page/UnreadPage.tsx"
import { CopyAs } from "../../../shared/words/CopyAs.tsx"
import { Facts } from "../../../shared/words/Facts.tsx"
import { countedText } from "../../../shared/words/format.ts"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import styles from "./Cancellation.module.css"
import { CancellationTiles } from "./CancellationTiles.tsx"
import { isOver, meaningOf, searchOf, selectionText, settledOf } from "./cancellation.ts"
import { StopCancellation } from "./StopCancellation.tsx"
import { WithdrawCancellation } from "./WithdrawCancellation.tsx"

const route = getRouteApi("/operators/tasks/cancellations/$id")

const untilOver = (job: CancellationJobDetail): number | undefined => (isOver(job) ? undefined : 1_000)

/** Follows a cancellation of many tasks: which were asked for, and what the workers have answered. */
const CancellationPage = () => {
  const { id } = route.useParams()
  const path = taskPath`/tasks/cancellations/${id}`
  const known = useTasksApi<CancellationJobDetail>(path, {}, { refreshAfter: untilOver })
  const job = known.data
  if (known.error !== null && job === undefined)
    return (
      <UnreadPage
        title="Cancellation"
        query={known}
        missing={
          <Empty action={<LinkButton path="/tasks/cancellations">All cancellations</LinkButton>}>
            No cancellation has the id <ForeignText>{id}</ForeignText>. The server keeps the newest ones.
          </Empty>
        }
      />
    )
  return (
    <>
      <PageHeader
        title="Cancellation"
        beside={job !== undefined && <StatusWord meaning={meaningOf(job)}>{job.state}</StatusWord>}
        lead={job !== undefined && <ForeignText>{selectionText(job)}</ForeignText>}
        actions={
          <>
            {job !== undefined && <StopCancellation job={job} />}
            {job !== undefined && <WithdrawCancellation job={job} />}
            <CopyAs address={tasksPath + path} />
          </>
        }
      />
      {job?.stopped != null && (
        <p className={styles.note} role="status">
          <StatusWord meaning="warning">stopped</StatusWord> <When at={job.stopped.at} />
          {": "}
          {job.stopped.reason === null ? "somebody has stopped it." : <ForeignText>{job.stopped.reason}</ForeignText>}{" "}
          Not asked for: {countedText(job.remaining, "task")}.
        </p>
      )}
      {job !== undefined && job.withdrawn_at !== null && (
        <p className={styles.note} role="status">
          <StatusWord meaning="idle">withdrawn</StatusWord> <When at={job.withdrawn_at} />: what had no effect by then
          is taken back.
        </p>
      )}
      {job !== undefined && isOver(job) && job.requested > 0 && (
        <p className={styles.note} role="status">
          <StatusWord meaning="waiting">no answer</StatusWord> {countedText(job.requested, "task")} had no answer at the
          end. The worker that gets one does not handle it, until the request is withdrawn.
        </p>
      )}
      {job !== undefined && (
        <Progress
          className={styles.progress ?? ""}
          value={(settledOf(job) / Math.max(1, job.total)) * 100}
          aria-label="Tasks that are over"
        />
      )}
      <CancellationTiles query={known} job={job} />
      <div className={styles.panels}>
        <Panel
          title="Could not be cancelled"
          query={known}
          height={120}
          empty={job?.problems.length === 0 ? <p>None.</p> : undefined}
        >
          <ul className={styles.problems}>
            {job?.problems.map(({ detail, task_id }) => (
              <li key={task_id}>
                <Link to="/tasks/$taskId" params={{ taskId: task_id }}>
                  <ForeignText>{task_id}</ForeignText>
                </Link>{" "}
                <ForeignText>{detail}</ForeignText>
              </li>
            ))}
          </ul>
          {job !== undefined && job.failed > job.problems.length && (
            <p>These are the first {countedText(job.problems.length, "one")}.</p>
          )}
        </Panel>
        <Panel title="What it is" query={known} height={160}>
          {job !== undefined && (
            <Facts
              facts={[
                ["Reason", <ForeignText key="reason">{job.reason}</ForeignText>],
                ["By", job.by === null ? null : <ForeignText key="by">{job.by}</ForeignText>],
                [
                  "Search",
                  job.query === null ? null : (
                    <Link key="search" to="/tasks" search={{ q: searchOf(job.query) }}>
                      <ForeignText>{searchOf(job.query)}</ForeignText>
                    </Link>
                  )
                ],
                ["Begun", <When key="begun" at={job.started_at} />],
                ["Latest", <When key="latest" at={job.updated_at} />],
                ["Ended", <When key="ended" at={job.ended_at} absent="not yet" />]
              ]}
            />
          )}
        </Panel>
      </div>
    </>
  )
}

export default CancellationPage
