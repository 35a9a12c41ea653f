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

const attempt = (number: number, ms: number): Node =>
  node(`task-attempt:t:${number}`, "task_attempt", "t", ms, `t attempt ${number}`, {
    consumer_name: "w",
    task_type: "read"
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

/** A task that failed for good, was replayed, retried, and then brought its result to the aggregation of its parent. */
export const repaired: ExecutionGraph = graphOf(
  "t",
  [
    node("task:t", "task", "t", 0),
    attempt(1, 1_000),
    node("status:t:1", "status_event", "t", 1_020, "failed", { message: "no such page" }),
    attempt(2, 5_000),
    node("status:t:2", "status_event", "t", 5_020, "retrying", { message: "Retry 1/3 is scheduled: it sticks." }),
    node("retry:t:1", "retry", "t", 5_020, "retry 1", { reason: "handler_error" }),
    attempt(3, 7_000),
    node("status:t:3", "status_event", "t", 7_010, "aggregating"),
    node("task-attempt:t:4", "task_attempt", "t", 7_011, "t attempt 4", { consumer_name: "a", parent_task_id: "p" }),
    node("status:t:4", "status_event", "t", 7_012, "completed")
  ],
  [
    ...[1, 2, 3, 4].flatMap((number) => [
      edge("task:t", "received_by", `task-attempt:t:${number}`),
      edge(`task-attempt:t:${number}`, "published_status", `status:t:${number}`)
    ]),
    edge("task-attempt:t:2", "retried_as", "retry:t:1"),
    edge("retry:t:1", "received_by", "task-attempt:t:3")
  ],
  []
)

/** A task with children of one attempt each, of which two have failed. */
export const parentOf = (children: number, id = "p"): ExecutionGraph => {
  const nodes: Array<Node> = [node(`task:${id}`, "task", id, 0)]
  const edges: Array<Edge> = []
  const ids = Array.from({ length: children }, (_, place) => `${id}.${place}`)
  for (const [place, child] of ids.entries()) {
    const attempt = `task-attempt:${child}:1`
    nodes.push(node(`aggregation_child:${child}`, "aggregation_child", child, place))
    nodes.push(node(attempt, "task_attempt", child, place, `${child} attempt 1`, { task_type: "part" }))
    nodes.push(node(`status:${child}:1`, "status_event", child, place + 30, place < 2 ? "failed" : "completed"))
    edges.push(edge(`aggregation_child:${child}`, "aggregated_into", `task:${id}`))
    edges.push(edge(`aggregation_child:${child}`, "received_by", attempt))
    edges.push(edge(attempt, "published_status", `status:${child}:1`))
  }
  return graphOf(id, nodes, edges, ids)
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
