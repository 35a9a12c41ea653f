import { Schema } from "effect"
import { JsonObject } from "../messaging/envelope/Envelope.ts"
import * as StatusEvent from "../messaging/envelope/StatusEvent.ts"
import type { Topology } from "../messaging/topology/Topology.ts"
import { SharedStatusWorkflowTopology } from "../messaging/topology/WorkflowTopology.ts"
import type { DeadLetterSummary } from "../status/dead-letters/DeadLetterStore.ts"
import type { StatusHistory } from "../status/store/StatusStore.ts"
import { Incomplete, type IncompleteReason, IncompleteReasons } from "./Completeness.ts"
import * as DeadLetterNodes from "./draw/DeadLetterNodes.ts"
import * as DeliveryNodes from "./draw/DeliveryNodes.ts"
import * as Evidence from "./draw/Evidence.ts"
import { GraphBuilder, GraphEdge, GraphNode, type Instant, type Timed } from "./draw/GraphBuilder.ts"
import * as RetryNodes from "./draw/RetryNodes.ts"
import * as StatusNodes from "./draw/StatusNodes.ts"
import type { ObservationHistory } from "./observations/ObservationStore.ts"

const N = Schema.NullOr(Schema.String)

export const GraphSummary = Schema.Struct({
  /** The latest status of the requested task. */
  status: N,
  /** The earliest timestamp in the graph. */
  started_at: N,
  /** The time of the latest status. If there is no status, the latest timestamp in the graph. */
  ended_at: N,
  duration_ms: Schema.NullOr(Schema.Int),
  /** `full` if there are observations, `partial` if there are only statuses and dead letters. */
  graph_completeness: Schema.Literals(["full", "partial"]),
  /** The known reasons why the graph may be incomplete. */
  completeness_reasons: Schema.Array(Incomplete)
})
export type GraphSummary = typeof GraphSummary.Type

/** The history of a task and its children. Nodes and edges are in chronological order. Unknown times come first. */
export const ExecutionGraph = Schema.Struct({
  task_id: Schema.String,
  topology_kind: Schema.String,
  summary: GraphSummary,
  nodes: Schema.Array(GraphNode),
  edges: Schema.Array(GraphEdge),
  /** `task_types`: the types of the task's attempts. `parent_task_ids`: the parents of the task, if it is a child. */
  annotations: JsonObject,
  /** The sorted ids of the children. */
  related_task_ids: Schema.Array(Schema.String)
})
export type ExecutionGraph = typeof ExecutionGraph.Type

/** The stored events of a task and of its children, from which a graph is built. */
export interface GraphEvidence {
  readonly topology: Pick<Topology, "kind">
  readonly taskId: string
  readonly statuses: ReadonlyMap<string, StatusHistory>
  readonly observations: ReadonlyMap<string, ObservationHistory>
  readonly deadLetters: ReadonlyArray<DeadLetterSummary>
  readonly relatedTaskIds: ReadonlyArray<string>
  /** The tasks whose events were not read completely because of a limit. */
  readonly leftOut?: ReadonlyArray<readonly [IncompleteReason, taskId: string]>
}

/** Returns whether any event of the task or its children is stored. */
export const isKnown = ({ deadLetters, observations, statuses }: GraphEvidence): boolean =>
  deadLetters.length > 0 || [...statuses.values(), ...observations.values()].some(({ events }) => events.length > 0)

/** Builds the graph of a task. Unreadable events are left out and reported in `completeness_reasons`. */
export const buildExecutionGraph = (evidence: GraphEvidence): ExecutionGraph => {
  const { taskId, topology } = evidence
  const related = relatedTaskIds(evidence)
  const builder = new GraphBuilder()
  const root = builder.addNode(`task:${taskId}`, "task", taskId)
  const tasks = [{ id: taskId, node: root }]
  for (const id of related) {
    const node = builder.addNode(`aggregation_child:${id}`, "aggregation_child", id)
    builder.addEdge(node, "aggregated_into", root)
    tasks.push({ id, node })
  }
  const gaps = new IncompleteReasons()
  for (const [reason, id] of evidence.leftOut ?? []) gaps.add(reason, id)
  const queueByStage = inboxesOf(topology)
  const taskTypes = new Set<string>()
  const parents = new Set<string>()
  let observed = false
  let last: Evidence.RecordedStatus | undefined
  const recordsOf = Map.groupBy(evidence.deadLetters, ({ task_id }) => task_id ?? "")
  for (const { id, node } of tasks) {
    const history = evidence.observations.get(id)
    const observations = Evidence.readObservations(history)
    const statuses = Evidence.readStatuses(evidence.statuses.get(id))
    const records = recordsOf.get(id) ?? []
    addIncompleteReasons(gaps, id, evidence, observations, statuses, records.length)
    observed ||= observations.entries.length > 0
    const taskNodes = DeliveryNodes.addNodes(
      builder,
      id,
      node,
      observations.entries,
      (stage) => queueByStage.get(stage) ?? null
    )
    RetryNodes.addNodes(builder, taskNodes, observations.entries)
    DeadLetterNodes.addNodes(builder, taskNodes, observations.entries, records)
    StatusNodes.addNodes(builder, taskNodes, statuses.entries)
    for (const { taskType } of taskNodes.attempts.all) {
      if (taskType !== null && taskType.trim() !== "") taskTypes.add(taskType)
    }
    if (id !== taskId) continue
    last = statuses.entries.at(-1)
    for (const parent of parentsOf(observations.entries, statuses.entries)) {
      if (parent !== taskId) parents.add(parent)
    }
  }
  const parentIds = [...parents].sort()
  const nodeOf = new Map(tasks.map(({ id, node }) => [id, node]))
  for (const parent of parentIds) {
    builder.addEdge(root, "aggregated_into", nodeOf.get(parent) ?? parentNode(builder, parent))
  }
  const [nodes, edges] = [builder.sortedNodes(), builder.sortedEdges()]
  return {
    task_id: taskId,
    topology_kind: topology.kind,
    summary: {
      ...timesOf(last, [...nodes, ...edges]),
      graph_completeness: observed ? "full" : "partial",
      completeness_reasons: gaps.reasons()
    },
    nodes: nodes.map(({ at: _, ...node }) => node),
    edges: edges.map(({ at: _, ...edge }) => edge),
    annotations: {
      ...(taskTypes.size > 0 && { task_types: [...taskTypes].sort() }),
      ...(parentIds.length > 0 && { parent_task_ids: parentIds })
    },
    related_task_ids: related
  }
}

const parentNode = (builder: GraphBuilder, taskId: string): string =>
  builder.addNode(`task:${taskId}`, "task", taskId, undefined, { annotations: { relation: "parent" } })

const relatedTaskIds = ({ relatedTaskIds, taskId }: GraphEvidence): ReadonlyArray<string> =>
  [...new Set(relatedTaskIds)].filter((id) => id.trim() !== "" && id !== taskId).sort()

/** Returns the queue of each stage, for observations of workers that do not report their queue. */
const inboxesOf = (topology: Pick<Topology, "kind">): ReadonlyMap<string, string> =>
  topology instanceof SharedStatusWorkflowTopology
    ? new Map(topology.stages.map(({ name, queue }) => [name, queue]))
    : new Map()

const addIncompleteReasons = (
  gaps: IncompleteReasons,
  id: string,
  evidence: GraphEvidence,
  observations: Evidence.ReadEntries<Evidence.RecordedObservation>,
  statuses: Evidence.ReadEntries<Evidence.RecordedStatus>,
  records: number
): void => {
  if (observations.entries.length === 0 && statuses.entries.length + records > 0) gaps.add("observations_missing", id)
  if ((evidence.observations.get(id)?.oldest ?? 0) > 1) gaps.add("observation_history_trimmed", id)
  if ((evidence.statuses.get(id)?.oldest ?? 0) > 1) gaps.add("status_history_trimmed", id)
  if (observations.unreadable + statuses.unreadable > 0) gaps.add("entries_unreadable", id)
}

const parentsOf = (
  observations: ReadonlyArray<Evidence.RecordedObservation>,
  statuses: ReadonlyArray<Evidence.RecordedStatus>
): ReadonlyArray<string> => [
  ...observations.flatMap((seen) => {
    const parent = seen.text("parent_task_id")
    return parent === null || parent.trim() === "" ? [] : [parent]
  }),
  ...statuses.flatMap(({ meta }) => StatusEvent.parentTaskId({ meta }) ?? [])
]

const timesOf = (
  last: Evidence.RecordedStatus | undefined,
  dated: ReadonlyArray<Timed<{ readonly timestamp: string | null }>>
): Pick<GraphSummary, "status" | "started_at" | "ended_at" | "duration_ms"> => {
  let [first, latest]: [Instant | undefined, Instant | undefined] = [undefined, undefined]
  for (const one of dated) {
    if (one.timestamp === null) continue
    if (first === undefined || one.at < first.at) first = one
    if (latest === undefined || one.at > latest.at) latest = one
  }
  const ended = last?.timestamp != null ? last : latest
  return {
    status: last?.status ?? null,
    started_at: first?.timestamp ?? null,
    ended_at: ended?.timestamp ?? null,
    duration_ms: first === undefined || ended === undefined ? null : Math.trunc((ended.at - first.at) / 1000)
  }
}
