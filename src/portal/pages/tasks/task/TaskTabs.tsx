import { Panel } from "../../../shared/page/Panel.tsx"
import { Tabs } from "../../../shared/page/Tabs.tsx"
import { GraphTab } from "./graph/GraphTab.tsx"
import { InputOutput } from "./InputOutput.tsx"
import { ModelCalls } from "./ModelCalls.tsx"
import { RawTab } from "./RawTab.tsx"
import { Statuses } from "./Statuses.tsx"
import { SequenceTab } from "./sequence/SequenceTab.tsx"
import { Timeline } from "./timeline/Timeline.tsx"
import type { TaskData } from "./useTask.ts"

interface Props {
  readonly task: TaskData
  readonly selection: string | undefined
  readonly onSelect: (id: string | undefined) => void
}

/** Several views of one set of data. What is selected in one is selected in all. */
export const TaskTabs = ({ onSelect: select, selection, task }: Props) => {
  const { taskId, view } = task
  const graph = view.data?.graph
  return (
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
  )
}
