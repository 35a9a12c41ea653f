import { Schema } from "effect"
import { JsonObject } from "../messaging/envelope/Envelope.ts"

const N = Schema.NullOr(Schema.String)

export const NodeKind = Schema.Literals([
  /**
   * The requested task, whose node is `task:<task_id>`. Also the parent that it was aggregated into, marked by the
   * annotation `relation: "parent"`: the specification's kinds have none for it, and readers may know no others.
   */
  "task",
  /** One receipt of a task, or of an aggregation event of it, from a queue. */
  "task_attempt",
  /** A message between stages. */
  "workflow_message",
  /** One receipt of a workflow message by a stage. */
  "stage_attempt",
  "status_event",
  /** A failed message that waits, or waited, in a retry queue. */
  "retry",
  "dlq_record",
  "aggregation_child"
])
export type NodeKind = typeof NodeKind.Type

export const EdgeKind = Schema.Literals([
  /** From a task, a retry or a replayed dead letter to its attempt; from a task to a message that came from outside. */
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

/**
 * `timestamp`: as the evidence wrote it; `null` where it has none that can be read. The annotations of a status hold its
 * `meta`, where a number from 2^53 on is a value of `JSON.rawJSON`, and is written as it came.
 */
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

/** When something was, as it was written and as it is compared: epoch microseconds, before all others where unknown. */
export interface Instant {
  readonly timestamp: string | null
  readonly at: number
}

export const unknownInstant: Instant = { timestamp: null, at: Number.NEGATIVE_INFINITY }

export type Timed<A> = A & { readonly at: number }

/** A graph that grows: nodes get ids of their own, and everything ends in the order of time. */
export class GraphBuilder {
  readonly #nodes = new Map<string, Timed<GraphNode>>()
  readonly #edges: Array<Timed<GraphEdge>> = []
  /** Of ids that several nodes asked for: the lowest number that may be free. */
  readonly #numbers = new Map<string, number>()

  /**
   * The id that the node got: task ids may hold colons, and then the ids of two nodes could be one. `label`: default its
   * id; `annotations`: default none.
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

  /** By time, then by id. */
  sortedNodes(): ReadonlyArray<Timed<GraphNode>> {
    return [...this.#nodes.values()].sort((one, other) => compare(one.at, other.at) || compare(one.id, other.id))
  }

  /** By time, kind, source, target. */
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

/** Texts by their code units, so that every machine sorts alike. */
export const compare = <A extends number | string>(one: A, other: A): number => (one < other ? -1 : one > other ? 1 : 0)
