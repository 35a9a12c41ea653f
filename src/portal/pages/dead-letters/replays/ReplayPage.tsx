import { getRouteApi, Link } from "@tanstack/react-router"
import { useTasksApi } from "../../../api/queries.ts"
import type { ReplayJobDetail } from "../../../api/TaskTypes.ts"
import { taskPath, tasksPath } from "../../../api/tasks.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { LinkButton } from "../../../shared/links/LinkButton.tsx"
import { Empty } from "../../../shared/page/Empty.tsx"
import { PageHeader } from "../../../shared/page/PageHeader.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { Tile, Tiles } from "../../../shared/page/Tile.tsx"
import { UnreadPage } from "../../../shared/page/UnreadPage.tsx"
import { CopyAs } from "../../../shared/words/CopyAs.tsx"
import { Facts } from "../../../shared/words/Facts.tsx"
import { durationText } from "../../../shared/words/format.ts"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import { meaningOfJob, provedOf, selectionText } from "./jobWords.ts"
import { PausedNote } from "./PausedNote.tsx"
import { Problems } from "./Problems.tsx"
import styles from "./Replay.module.css"
import { ReplayActions } from "./ReplayActions.tsx"
import { Steps } from "./Steps.tsx"

const route = getRouteApi("/operators/dead-letters/replays/$replayId")

/** It is followed until it is over and all of its outcomes are known. */
const untilProved = (job: ReplayJobDetail): number | undefined => {
  if (job.state === "running") return 1_000
  return job.state === "paused" || (provedOf(job)?.open ?? 0) > 0 ? 3_000 : undefined
}

/** How a replay goes: what was published, and what is proved of it. */
const ReplayPage = () => {
  const { replayId } = route.useParams()
  const path = taskPath`/dlq/replays/${replayId}`
  const known = useTasksApi<ReplayJobDetail>(path, {}, { refreshAfter: untilProved })
  const job = known.data
  const proved = job === undefined ? undefined : provedOf(job)
  if (known.error !== null && job === undefined)
    return (
      <UnreadPage
        title="Replay"
        query={known}
        missing={
          <Empty
            action={
              <LinkButton path="/dead-letters" search={{ tab: "replays" }}>
                All replays
              </LinkButton>
            }
          >
            No replay has the id <ForeignText>{replayId}</ForeignText>.
          </Empty>
        }
      />
    )
  return (
    <>
      <PageHeader
        title="Replay"
        beside={job !== undefined && <StatusWord meaning={meaningOfJob(job)}>{job.state}</StatusWord>}
        lead={job === undefined ? undefined : <ForeignText>{selectionText(job)}</ForeignText>}
        actions={
          <>
            {job !== undefined && <ReplayActions job={job} />}
            <CopyAs address={tasksPath + path} />
          </>
        }
      />
      {job?.paused !== undefined && <PausedNote {...job.paused} />}
      {job?.waiting != null && job.state === "running" && (
        <p className={styles.paused}>
          <StatusWord meaning="waiting">waiting</StatusWord> <ForeignText>{job.waiting}</ForeignText>
        </p>
      )}
      {job?.plan?.begin_at !== undefined && job.state === "running" && isEarly(job) && (
        <p className={styles.paused}>
          <StatusWord meaning="waiting">waiting</StatusWord> It begins <When at={job.plan.begin_at} />.
        </p>
      )}
      <Tiles>
        <Tile
          label="Letters"
          query={known}
          value={job?.total}
          detail={job?.truncated ? "more matched: start another one" : undefined}
        />
        <Tile label="Published" query={known} value={job?.replayed} detail={job && remainingText(job)} />
        <Tile label="Handled" query={known} value={job && (proved?.handled ?? "–")} detail="proved by a status" />
        <Tile
          label="Failed again"
          query={known}
          value={job && (proved?.failed_again ?? "–")}
          detail="dead letters anew"
        />
        <Tile label="Not known yet" query={known} value={job && (proved?.open ?? "–")} detail="published, no word" />
        <Tile
          label="Not published"
          query={known}
          value={job && job.skipped + job.failed + job.unknown}
          detail={job && notPublished(job)}
        />
      </Tiles>
      <div className={styles.panels}>
        <Panel title="Steps" query={known} height={240}>
          {job?.steps !== undefined && <Steps steps={job.steps} />}
          {job !== undefined && job.steps === undefined && <p>It replays all letters at once.</p>}
        </Panel>
        <Panel title="Plan" query={known} height={120}>
          {job?.plan !== undefined && (
            <Facts
              facts={[
                ["Steps", [...job.plan.steps, "all"].join(" · ")],
                ["Rate", job.plan.rate === null ? "as fast as the worker allows" : `${job.plan.rate} per second`],
                [
                  "Stop after",
                  job.plan.stop_after === null ? "never" : `${job.plan.stop_after} failures with the same exception`
                ],
                ["Wait for outcomes", durationText(job.plan.wait_seconds * 1_000)],
                ["Begins", job.plan.begin_at === undefined ? null : <When key="begins" at={job.plan.begin_at} />],
                ["Started", <When key="started" at={job.started_at} />],
                ["Latest", <When key="updated" at={job.updated_at} />]
              ]}
            />
          )}
        </Panel>
      </div>
      {job !== undefined && job.problems.length > 0 && <Problems problems={job.problems} />}
      {(proved?.failed_again ?? 0) > 0 && (
        <p>
          What has failed again is among the <Link to="/dead-letters">groups</Link> once more.
        </p>
      )}
    </>
  )
}

const isEarly = ({ steps }: ReplayJobDetail): boolean => steps?.[0]?.verdict === "not_begun"

const remainingText = ({ remaining, state }: ReplayJobDetail): string =>
  state === "cancelled" ? `${remaining} left as they were` : `${remaining} to go`

const notPublished = ({ failed, skipped, unknown }: ReplayJobDetail): string =>
  `${skipped} skipped, ${failed} failed, ${unknown} unknown`

export default ReplayPage
