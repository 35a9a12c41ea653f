import { Badge, Skeleton, Tooltip } from "@mantine/core"
import { getRouteApi, Link } from "@tanstack/react-router"
import { useTextSearch } from "../../../address/search.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { PageHeader } from "../../../shared/page/PageHeader.tsx"
import { useSettled } from "../../../shared/page/useSettled.ts"
import { meaningOfTaskStatus } from "../../../shared/tasks/meanings.ts"
import { useTaskEvents } from "../../../shared/tasks/useTaskEvents.ts"
import { CopyButton } from "../../../shared/words/CopyButton.tsx"
import { countedText } from "../../../shared/words/format.ts"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { Completeness } from "./Completeness.tsx"
import { Countdown } from "./Countdown.tsx"
import { ExplainPanel } from "./ExplainPanel.tsx"
import { Replays } from "./Replays.tsx"
import { Selected } from "./Selected.tsx"
import styles from "./Task.module.css"
import { TaskActions } from "./TaskActions.tsx"
import { TaskTabs } from "./TaskTabs.tsx"
import { UnknownTask } from "./UnknownTask.tsx"
import { useTask } from "./useTask.ts"

const route = getRouteApi("/operators/tasks/$taskId")

/** One task: why it is not done, and all that is known of it, in several views of one set of data. */
const TaskPage = () => {
  const { taskId } = route.useParams()
  const task = useTask(taskId)
  const { change, text } = useTextSearch()
  const refresh = () => {
    for (const query of [task.explanation, task.view, task.history, task.letters])
      if (!query.isFetching) void query.refetch()
  }
  useTaskEvents(taskId, refresh)
  const isNowhere = task.view.error?.status === 404 && task.history.data?.count === 0
  // an explanation may exist where nothing else does, but the lack of one says no more than the other parts
  const isKnown = !task.view.isPending && !task.history.isPending
  const isUnexplained = task.explanation.error?.status === 404 && (isNowhere || !isKnown)
  // how tall the head of the page is on a phone is known with them
  const isHeadKnown = useSettled([task.explanation, task.view, task.letters])
  const selection = text("at")
  const select = (id: string | undefined) => change({ at: id })
  const { view } = task
  const graph = view.data?.graph
  const parents = parentsOf(graph?.annotations["parent_task_ids"])
  const status = view.data?.summary.status
  return (
    <>
      <PageHeader
        title="Task"
        beside={
          <>
            {status != null && (
              <StatusWord meaning={meaningOfTaskStatus(status)}>
                <ForeignText>{status}</ForeignText>
              </StatusWord>
            )}
            <Countdown until={task.explanation.data?.until ?? null} />
            {view.data !== undefined && <Completeness summary={view.data.summary} />}
          </>
        }
        lead={
          <span className={styles.id}>
            <ForeignText>{taskId}</ForeignText>
            <CopyButton text={taskId} label="Copy the id" />
          </span>
        }
        actions={<TaskActions task={task} />}
        areActionsLate
      />
      {!isUnexplained && <ExplainPanel explanation={task.explanation} />}
      <Replays letters={task.letters} />
      <div className={styles.kin}>
        {parents.map((parent) => (
          <span key={parent}>
            child of{" "}
            <Link to="/tasks/$taskId" params={{ taskId: parent }}>
              <ForeignText>{parent}</ForeignText>
            </Link>
          </span>
        ))}
        {(graph?.related_task_ids.length ?? 0) > 0 && (
          <Link to="/tasks" search={{ q: `parent:${taskId}` }}>
            {countedText(graph?.related_task_ids.length ?? 0, "child", "children")}
          </Link>
        )}
        {typesOf(graph?.annotations["task_types"]).map((type) => (
          <Tooltip key={type} label="type of the task">
            <Badge variant="light" color="gray" tt="none">
              <ForeignText>{type}</ForeignText>
            </Badge>
          </Tooltip>
        ))}
      </div>
      {isNowhere && <UnknownTask />}
      {!isNowhere && !isHeadKnown && <Skeleton height={360} />}
      {!isNowhere && isHeadKnown && <TaskTabs task={task} selection={selection} onSelect={select} />}
      <Selected task={task} selection={selection} onClose={() => select(undefined)} />
    </>
  )
}

const typesOf = (value: unknown): ReadonlyArray<string> =>
  Array.isArray(value) ? value.filter((one) => typeof one === "string") : []

const parentsOf = typesOf

export default TaskPage
