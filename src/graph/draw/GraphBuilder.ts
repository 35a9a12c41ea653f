import { Schema } from "effect"
import { JsonObject } from "../../messaging/envelope/Envelope.ts"

const N = Schema.NullOr(Schema.String)

export const NodeKind = Schema.Literals([
  /**
   * The requested task. Its node id is `task:<task_id>`. A parent task also has this kind. It has the annotation
   * `relation: "parent"`.
   */
  "task",
  /** One delivery of a task or of an aggregation event to a worker. */
  "task_attempt",
  /** A message from one workflow stage to another. */
  "workflow_message",
  /** One delivery of a workflow message to a stage. */
  "stage_attempt",
  "status_event",
  /** A failed message in a retry queue. */
  "retry",
  "dlq_record",
  "aggregation_child"
])
export type NodeKind = typeof NodeKind.Type

export const EdgeKind = Schema.Literals([
  /** Links a task, a retry or a replayed dead letter to an attempt, or a task to a message of unknown origin. */
  "received_by",
  "published_status",
  "retried_as",
  "dead_lettered_to",
  "manual_retry_to",
  "entered_stage",
  "stage_transitioned_to",
  "aggregated_into"
])
export type EdgeKind = typeof EdgeKind.Type

/** A node of the graph. Numbers of 2^53 or more in the `meta` of a status are exact `JSON.rawJSON` values. */
export const GraphNode = Schema.Struct({
  id: Schema.String,
  kind: NodeKind,
  task_id: N,
  label: Schema.String,
  timestamp: N,
  annotations: JsonObject
})
export type GraphNode = typeof GraphNode.Type

export const GraphEdge = Schema.Struct({
  source: Schema.String,
  target: Schema.String,
  kind: EdgeKind,
  timestamp: N,
  annotations: JsonObject
})
export type GraphEdge = typeof GraphEdge.Type

/** A time as text, and in microseconds since 1970 for comparisons. An unknown time comes before all others. */
export interface Instant {
  readonly timestamp: string | null
  readonly at: number
}

export const unknownInstant: Instant = { timestamp: null, at: Number.NEGATIVE_INFINITY }

export type Timed<A> = A & { readonly at: number }

/** Collects nodes and edges, keeps node ids unique, and sorts by time. */
export class GraphBuilder {
  readonly #nodes = new Map<string, Timed<GraphNode>>()
  readonly #edges: Array<Timed<GraphEdge>> = []
  readonly #numbers = new Map<string, number>()

  /**
   * Adds a node and returns its id. If the requested id is taken, the node gets a numbered id. Ids may conflict,
   * because task ids may contain colons. Default of `label`: the task id.
   */
  addNode(
    id: string,
    kind: NodeKind,
    taskId: string,
    when: Instant = unknownInstant,
    { annotations = {}, label = taskId }: { readonly label?: string; readonly annotations?: JsonObject } = {}
  ): string {
    const uniqueId = this.#nodes.has(id) ? this.#numbered(id) : id
    const { at, timestamp } = when
    this.#nodes.set(uniqueId, { id: uniqueId, kind, task_id: taskId, label, timestamp, annotations, at })
    return uniqueId
  }

  addEdge(
    source: string,
    kind: EdgeKind,
    target: string,
    when: Instant = unknownInstant,
    annotations: JsonObject = {}
  ): void {
    const { at, timestamp } = when
    this.#edges.push({ source, target, kind, timestamp, annotations, at })
  }

  sortedNodes(): ReadonlyArray<Timed<GraphNode>> {
    return [...this.#nodes.values()].sort((one, other) => compare(one.at, other.at) || compare(one.id, other.id))
  }

  sortedEdges(): ReadonlyArray<Timed<GraphEdge>> {
    return this.#edges.sort(
      (one, other) =>
        compare(one.at, other.at) ||
        compare(one.kind, other.kind) ||
        compare(one.source, other.source) ||
        compare(one.target, other.target)
    )
  }

  #numbered(id: string): string {
    let number = this.#numbers.get(id) ?? 2
    while (this.#nodes.has(`${id}~${number}`)) number++
    this.#numbers.set(id, number + 1)
    return `${id}~${number}`
  }
}

/** Compares texts by code units, so the order does not depend on the locale. */
export const compare = <A extends number | string>(one: A, other: A): number => (one < other ? -1 : one > other ? 1 : 0)
