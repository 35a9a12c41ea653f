import { useMemo } from "react"
import type { ExecutionGraph } from "../../../../api/TaskTypes.ts"
import { FlowChart } from "../../../../shared/graph/FlowChart.tsx"
import { fold } from "./fold.ts"

interface Props {
  readonly graph: ExecutionGraph
  readonly selection: string | undefined
  readonly onSelect: (id: string | undefined) => void
}

/** What happened to the task and its children, and what it led to. */
export const GraphTab = ({ graph, onSelect, selection }: Props) => {
  const { edges, nodes } = useMemo(() => fold(graph), [graph])
  return <FlowChart label="Graph of the task" nodes={nodes} edges={edges} selection={selection} onSelect={onSelect} />
}
