import { useNavigate } from "@tanstack/react-router"
import { useMemo } from "react"
import { useTasksApi } from "../../api/queries.ts"
import type { QueueView, TopologyView } from "../../api/TaskTypes.ts"
import { tasksPath } from "../../api/tasks.ts"
import { FlowChart } from "../../shared/graph/FlowChart.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { curlOf } from "../../shared/words/CopyAs.tsx"
import { mapNodes } from "./mapNodes.ts"

/** How messages go, and whether the broker has everything as it is planned. */
export const MapPanel = ({ queues }: { readonly queues: ReadonlyArray<QueueView> }) => {
  const topology = useTasksApi<TopologyView>("/topology")
  const navigate = useNavigate()
  const { data } = topology
  const { edges, nodes } = useMemo(
    () => (data === undefined ? { nodes: [], edges: [] } : mapNodes(data, queues)),
    [data, queues]
  )
  return (
    <Panel
      query={topology}
      height={520}
      flush
      empty={
        nodes.length === 0 ? (
          <Empty command={curlOf({ address: `${tasksPath}/topology` })}>
            No topology is declared yet. A worker or a publisher declares its own.
          </Empty>
        ) : undefined
      }
    >
      <FlowChart
        label="Map of exchanges, queues and stages"
        nodes={nodes}
        edges={edges}
        selection={undefined}
        onSelect={(id) => {
          const queue = id?.startsWith("queue ") ? id.slice("queue ".length) : undefined
          if (queue !== undefined) void navigate({ to: "/tasks", search: { q: `queue:${queue}` } })
        }}
      />
    </Panel>
  )
}
