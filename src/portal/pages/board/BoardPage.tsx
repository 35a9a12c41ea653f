import { useTextSearch } from "../../address/search.ts"
import { useLiveRefresh } from "../../api/live.ts"
import { useTasksApi } from "../../api/queries.ts"
import type { DeadLetterQueues, Queues, Workers } from "../../api/TaskTypes.ts"
import { tasksPath } from "../../api/tasks.ts"
import { Empty } from "../../shared/page/Empty.tsx"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { useSettled } from "../../shared/page/useSettled.ts"
import { CopyAs, curlOf } from "../../shared/words/CopyAs.tsx"
import { Alarms } from "./Alarms.tsx"
import { MapPanel } from "./MapPanel.tsx"
import { MapSwitch } from "./MapSwitch.tsx"
import { PauseDialog } from "./PauseDialog.tsx"
import { QueueTable } from "./QueueTable.tsx"
import { WorkerCards } from "./WorkerCards.tsx"

const topics = ["queues", "workers", "dead_letters"] as const
/** Ages and times to the next retry move on without an event. */
const refreshMs = 15_000

/** Do the queues flow, and who works on them? */
const BoardPage = () => {
  const { change, text } = useTextSearch()
  const queues = useTasksApi<Queues>("/queues", {}, { refreshMs })
  const workers = useTasksApi<Workers>("/workers", {}, { refreshMs })
  const letters = useTasksApi<DeadLetterQueues>("/dlq/queues", {}, { refreshMs })
  useLiveRefresh(topics, [tasksPath])
  // both kinds of alarms appear together and before the table, because each of them moves what is below
  const areAlarmsTold = useSettled([queues, letters], { isBegun: !queues.isPending })
  const isMap = text("view") === "map"
  const { data, dataUpdatedAt, error, isPlaceholderData, refetch } = queues
  const isTableKnown = !queues.isPending && areAlarmsTold
  const asked = queues.data?.queues.find(({ queue }) => queue === text("pause"))
  return (
    <>
      <PageHeader
        title="Board"
        lead="Do the queues flow, and who works on them?"
        actions={
          <>
            <MapSwitch />
            <CopyAs address={`${tasksPath}/queues`} />
          </>
        }
      />
      <Alarms areTold={areAlarmsTold} queues={queues} workers={workers} letters={letters} />
      {isMap ? (
        <MapPanel queues={queues.data?.queues ?? []} />
      ) : (
        <Panel
          query={{ data, dataUpdatedAt, error, isPending: !isTableKnown, isPlaceholderData, refetch }}
          height={360}
          flush
        >
          <QueueTable
            queues={queues.data?.queues ?? []}
            workers={workers.data?.workers ?? []}
            letters={letters.data?.queues}
            empty={
              <Empty command={curlOf({ address: `${tasksPath}/queues` })}>
                There is no worker queue. A queue appears once a topology names it, or a worker consumes from it.
              </Empty>
            }
          />
        </Panel>
      )}
      {/* how tall the table is on a phone is known with its queues */}
      {(isMap || isTableKnown) && <WorkerCards workers={workers} />}
      {asked !== undefined && <PauseDialog queue={asked} onClose={() => change({ pause: undefined })} />}
    </>
  )
}

export default BoardPage
