import { Schema } from "effect"
import { ExecutionGraph, GraphSummary } from "./ExecutionGraph.ts"
import { executionGraphMermaid } from "./Mermaid.ts"

/** An execution graph with its Mermaid text and its summary, for the page of a task. */
export const ExecutionView = Schema.Struct({
  task_id: Schema.String,
  topology_kind: Schema.String,
  summary: GraphSummary,
  related_task_ids: Schema.Array(Schema.String),
  graph: ExecutionGraph,
  mermaid: Schema.String
})
export type ExecutionView = typeof ExecutionView.Type

export const buildExecutionView = (graph: ExecutionGraph): ExecutionView => ({
  task_id: graph.task_id,
  topology_kind: graph.topology_kind,
  summary: graph.summary,
  related_task_ids: graph.related_task_ids,
  graph,
  mermaid: executionGraphMermaid(graph)
})
