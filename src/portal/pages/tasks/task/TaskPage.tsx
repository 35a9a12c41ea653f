import { Badge, Tooltip } from "@mantine/core"
import { getRouteApi, Link } from "@tanstack/react-router"
import { useTextSearch } from "../../../address/search.ts"
import { PageHeader } from "../../../shared/page/PageHeader.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { Tabs } from "../../../shared/page/Tabs.tsx"
import { meaningOfTaskStatus } from "../../../shared/tasks/meanings.ts"
import { useTaskEvents } from "../../../shared/tasks/useTaskEvents.ts"
import { CopyButton } from "../../../shared/words/CopyButton.tsx"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { Completeness } from "./Completeness.tsx"
import { Countdown } from "./Countdown.tsx"
import { ExplainPanel } from "./ExplainPanel.tsx"
import { GraphTab } from "./graph/GraphTab.tsx"
import { InputOutput } from "./InputOutput.tsx"
import { ModelCalls } from "./ModelCalls.tsx"
import { RawTab } from "./RawTab.tsx"
import { Selected } from "./Selected.tsx"
import { Statuses } from "./Statuses.tsx"
import { SequenceTab } from "./sequence/SequenceTab.tsx"
import styles from "./Task.module.css"
import { TaskActions } from "./TaskActions.tsx"
import { Timeline } from "./timeline/Timeline.tsx"
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
                <bdi>{status}</bdi>
              </StatusWord>
            )}
            <Countdown until={task.explanation.data?.until ?? null} />
            {view.data !== undefined && <Completeness summary={view.data.summary} />}
          </>
        }
        lead={
          <span className={styles.id}>
            <bdi>{taskId}</bdi>
            <CopyButton text={taskId} label="Copy the id" />
          </span>
        }
        actions={<TaskActions task={task} />}
      />
      <ExplainPanel explanation={task.explanation} />
      <div className={styles.kin}>
        {parents.map((parent) => (
          <span key={parent}>
            child of{" "}
            <Link to="/tasks/$taskId" params={{ taskId: parent }}>
              <bdi>{parent}</bdi>
            </Link>
          </span>
        ))}
        {(graph?.related_task_ids.length ?? 0) > 0 && (
          <Link to="/tasks" search={{ q: `parent:${taskId}` }}>
            {graph?.related_task_ids.length} children
          </Link>
        )}
        {typesOf(graph?.annotations["task_types"]).map((type) => (
          <Tooltip key={type} label="type of the task">
            <Badge variant="light" color="gray" tt="none">
              {type}
            </Badge>
          </Tooltip>
        ))}
      </div>
      <Tabs
        tabs={[
          {
            value: "timeline",
            label: "Timeline",
            content: () => (
              <Panel query={view} height={300} flush>
                <Timeline attempts={task.attempts} taskId={taskId} selection={selection} onSelect={select} />
              </Panel>
            )
          },
          {
            value: "graph",
            label: "Graph",
            content: () => (
              <Panel query={view} height={520} flush>
                {graph !== undefined && <GraphTab graph={graph} selection={selection} onSelect={select} />}
              </Panel>
            )
          },
          {
            value: "sequence",
            label: "Sequence",
            content: () => (
              <Panel query={view} height={300} flush>
                {graph !== undefined && (
                  <SequenceTab graph={graph} attempts={task.attempts} selection={selection} onSelect={select} />
                )}
              </Panel>
            )
          },
          { value: "statuses", label: "Statuses", content: () => <Statuses taskId={taskId} /> },
          {
            value: "calls",
            label: "Model calls",
            content: () => <ModelCalls taskId={taskId} attempts={task.attempts} />
          },
          { value: "data", label: "Input and output", content: () => <InputOutput task={task} /> },
          { value: "raw", label: "Raw", content: () => <RawTab task={task} /> }
        ]}
      />
      <Selected task={task} selection={selection} onClose={() => select(undefined)} />
    </>
  )
}

const typesOf = (value: unknown): ReadonlyArray<string> =>
  Array.isArray(value) ? value.filter((one) => typeof one === "string") : []

const parentsOf = typesOf

export default TaskPage
