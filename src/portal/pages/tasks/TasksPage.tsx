import { Button } from "@mantine/core"
import { useState } from "react"
import { useTextSearch } from "../../address/search.ts"
import { withQuery } from "../../api/http.ts"
import { useLiveRefresh } from "../../api/live.ts"
import { useTasksList, withRows } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import type { Task, TaskPage } from "../../api/TaskTypes.ts"
import { tasksPath } from "../../api/tasks.ts"
import { LinkButton } from "../../shared/links/LinkButton.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { DataTable } from "../../shared/table/DataTable.tsx"
import { DetailDrawer } from "../../shared/table/DetailDrawer.tsx"
import { useMuted } from "../../shared/tasks/useMuted.ts"
import { CopyAs } from "../../shared/words/CopyAs.tsx"
import { countText } from "../../shared/words/format.ts"
import { BulkBar } from "./bulk/BulkBar.tsx"
import { CancelMatchingDialog } from "./bulk/CancelMatchingDialog.tsx"
import { RunningCancellations } from "./cancellations/RunningCancellations.tsx"
import { columnsWith } from "./columns.tsx"
import { HowFar } from "./HowFar.tsx"
import { NoMatchingTasks } from "./NoMatchingTasks.tsx"
import { SearchBox } from "./SearchBox.tsx"
import { StatusCounts } from "./StatusCounts.tsx"
import { TaskSummary } from "./TaskSummary.tsx"
import { useKnownValues } from "./useKnownValues.ts"
import { useTaskCosts } from "./useTaskCosts.ts"
import { useTaskSearch } from "./useTaskSearch.ts"

const topics = ["tasks"] as const
const rowsOf = ({ tasks }: TaskPage): ReadonlyArray<Task> => tasks
const nothing: ReadonlySet<string> = new Set()

/** Finds tasks by what their statuses say. */
const TasksPage = () => {
  const { change, text } = useTextSearch()
  const query = useTaskSearch()
  const list = useTasksList<TaskPage, Task>("/tasks", query, rowsOf)
  const known = useKnownValues(list.rows, query)
  const costs = useTaskCosts()
  const mayOperate = useAllowed("tasks:operate")
  const [selected, setSelected] = useState(nothing)
  const { isMuted } = useMuted()
  const [areAllShown, setAllShown] = useState(false)
  const [isCancelling, setCancelling] = useState(false)
  const shown = withRows(list, (tasks) => (areAllShown ? tasks : tasks.filter(({ task_id }) => !isMuted(task_id))))
  const unmuted = shown.rows
  const columns = columnsWith(costs)
  // rows that somebody reads further down must not move away
  useLiveRefresh(topics, list.pages === 1 ? [tasksPath] : [])
  const { error } = list.query
  return (
    <>
      <PageHeader
        title="Tasks"
        lead="What became of a task, and which ones have failed."
        actions={
          <>
            <CopyAs address={withQuery(`${tasksPath}/tasks`, query)} />
            <LinkButton path="/tasks/cancellations">Cancellations</LinkButton>
          </>
        }
      />
      <SearchBox known={known} error={error} />
      <StatusCounts query={query} />
      <RunningCancellations />
      <Panel query={error?.status === 422 ? { ...list.query, error: null } : list.query} height={420} flush>
        <DataTable
          name="tasks"
          label="Tasks"
          columns={columns}
          rows={unmuted}
          rowId={({ task_id }) => task_id}
          onOpen={({ task_id }) => change({ open: task_id })}
          openId={text("open")}
          list={shown}
          {...(mayOperate && { selected, onSelect: setSelected })}
          toolbar={
            selected.size > 0 ? (
              <BulkBar
                rows={unmuted}
                columns={columns}
                selected={selected}
                query={query}
                onDone={() => setSelected(nothing)}
              />
            ) : (
              <>
                <HowFar first={list.first} isFollowed={list.pages <= 1} onRefresh={() => void list.query.refetch()} />
                {mayOperate && text("q") !== undefined && unmuted.length > 0 && (
                  <Button variant="default" size="compact-sm" onClick={() => setCancelling(true)}>
                    Cancel all that match
                  </Button>
                )}
                {unmuted.length < list.rows.length && (
                  <Button variant="subtle" size="compact-sm" onClick={() => setAllShown(true)}>
                    {countText(list.rows.length - unmuted.length)} muted: show
                  </Button>
                )}
              </>
            )
          }
          empty={
            list.rows.length > 0 ? (
              <Empty
                action={
                  <Button variant="default" onClick={() => setAllShown(true)}>
                    Show them
                  </Button>
                }
              >
                All tasks that match are muted.
              </Empty>
            ) : (
              <NoMatchingTasks query={query} statuses={known["status"] ?? []} />
            )
          }
        />
      </Panel>
      {isCancelling && <CancelMatchingDialog query={query} onClose={() => setCancelling(false)} />}
      <DetailDrawer title={() => "Task"} page={(id) => `/tasks/${encodeURIComponent(id)}`}>
        {(id) => <TaskSummary taskId={id} />}
      </DetailDrawer>
    </>
  )
}

export default TasksPage
