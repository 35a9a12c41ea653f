/**
 * The public API of execution graphs: stores observations, builds the graph of a task, and explains why a task is not
 * done. Exported names follow the specification. A module with a `layer` is exported as a namespace.
 */
export type { Incomplete, IncompleteReason } from "./Completeness.ts"
export type { EdgeKind, GraphEdge, GraphNode, NodeKind } from "./draw/GraphBuilder.ts"
export {
  buildExecutionGraph,
  ExecutionGraph,
  type GraphEvidence,
  type GraphSummary,
  isKnown
} from "./ExecutionGraph.ts"
export * as ExecutionGraphs from "./ExecutionGraphService.ts"
export { ExecutionGraphService } from "./ExecutionGraphService.ts"
export { buildExecutionView, ExecutionView } from "./ExecutionView.ts"
export { Explanation } from "./Explain.ts"
export * as GraphRoutes from "./GraphRoutes.ts"
export { executionGraphMermaid } from "./Mermaid.ts"
export { type ObservationHistory, ObservationStore, type StoredObservation } from "./observations/ObservationStore.ts"
export * as RedisObservationStore from "./observations/RedisObservationStore.ts"
export { makeRedisObservationSink } from "./observations/RedisObservationStore.ts"
export * as StatusRuntime from "./StatusRuntime.ts"
