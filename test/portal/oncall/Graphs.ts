import type { ExecutionGraph } from "../../../src/graph/ExecutionGraph.ts"

type Node = ExecutionGraph["nodes"][number]
type Edge = ExecutionGraph["edges"][number]

export const at = (ms: number): string => new Date(Date.UTC(2026, 10, 26) + ms).toISOString()

const node = (id: string, kind: Node["kind"], task: string, ms: number, label = task, annotations = {}): Node => ({
  id,
  kind,
  task_id: task,
  label,
  timestamp: at(ms),
  annotations
})

const edge = (source: string, kind: Edge["kind"], target: string): Edge => ({
  source,
  kind,
  target,
  timestamp: null,
  annotations: {}
})

/** A task with attempts that fail and are retried, and whose last one ends with the status. */
export const retried = (attempts: number, status = "completed"): ExecutionGraph => {
  const nodes: Array<Node> = [node("task:t", "task", "t", 0)]
  const edges: Array<Edge> = []
  for (let number = 1; number <= attempts; number++) {
    const id = `task-attempt:t:${number}`
    const start = number * 1_000
    nodes.push(node(id, "task_attempt", "t", start, `t attempt ${number}`, { consumer_name: "w", task_type: "read" }))
    edges.push(edge("task:t", "received_by", id))
    if (number > 1) edges.push(edge(`retry:t:${number - 1}`, "received_by", id))
    if (number === attempts) {
      nodes.push(node("status:t:1", "status_event", "t", start + 100, status))
      edges.push(edge(id, "published_status", "status:t:1"))
      continue
    }
    nodes.push(node(`retry:t:${number}`, "retry", "t", start + 50, `retry ${number}`, { reason: "handler_error" }))
    edges.push(edge(id, "retried_as", `retry:t:${number}`))
  }
  return graphOf("t", nodes, edges, [])
}

/** A task with children of one attempt each, of which two have failed. */
export const parentOf = (children: number): ExecutionGraph => {
  const nodes: Array<Node> = [node("task:p", "task", "p", 0)]
  const edges: Array<Edge> = []
  const ids = Array.from({ length: children }, (_, place) => `p.${place}`)
  for (const [place, id] of ids.entries()) {
    const attempt = `task-attempt:${id}:1`
    nodes.push(node(`aggregation_child:${id}`, "aggregation_child", id, place))
    nodes.push(node(attempt, "task_attempt", id, place, `${id} attempt 1`, { task_type: "part" }))
    nodes.push(node(`status:${id}:1`, "status_event", id, place + 30, place < 2 ? "failed" : "completed"))
    edges.push(edge(`aggregation_child:${id}`, "aggregated_into", "task:p"))
    edges.push(edge(`aggregation_child:${id}`, "received_by", attempt))
    edges.push(edge(attempt, "published_status", `status:${id}:1`))
  }
  return graphOf("p", nodes, edges, ids)
}

/** A workflow whose every stage follows on two others, so that nothing of it can be folded. */
export const workflow = (stages: number, parallel: number): ExecutionGraph => {
  const nodes: Array<Node> = [node("task:w", "task", "w", 0)]
  const edges: Array<Edge> = []
  const id = (stage: number, place: number) => `stage:${stage}:${place % parallel}`
  for (let stage = 0; stage < stages; stage++)
    for (let place = 0; place < parallel; place++) {
      nodes.push(node(id(stage, place), "stage_attempt", "w", stage, `stage ${stage}, part ${place}`))
      if (stage === 0) edges.push(edge("task:w", "entered_stage", id(0, place)))
      else
        for (const before of [place, place + 1])
          edges.push(edge(id(stage - 1, before), "stage_transitioned_to", id(stage, place)))
    }
  return graphOf("w", nodes, edges, [])
}

const graphOf = (
  task_id: string,
  nodes: ReadonlyArray<Node>,
  edges: ReadonlyArray<Edge>,
  related_task_ids: ReadonlyArray<string>
): ExecutionGraph => ({
  task_id,
  topology_kind: "routed_tasks_shared_status",
  summary: {
    status: "completed",
    started_at: at(0),
    ended_at: at(1),
    duration_ms: 1,
    graph_completeness: "full",
    completeness_reasons: []
  },
  nodes,
  edges,
  annotations: {},
  related_task_ids
})
