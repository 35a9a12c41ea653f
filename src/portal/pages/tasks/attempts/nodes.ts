import type { GraphNode } from "../../../api/TaskTypes.ts"

/** The text of an annotation, or `null` if the node has none. */
export const textOf = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null)

const attemptKinds: ReadonlySet<string> = new Set(["task_attempt", "stage_attempt"])

/** The node is a delivery of the task to a worker. */
export const isDelivery = ({ kind }: GraphNode): boolean => attemptKinds.has(kind)

/** The event for the aggregation has no type of its own, and names the parent. The graph counts its delivery as an attempt. */
export const isAggregation = (node: GraphNode): boolean =>
  isDelivery(node) &&
  textOf(node.annotations["task_type"]) === null &&
  textOf(node.annotations["stage"]) === null &&
  textOf(node.annotations["parent_task_id"]) !== null

/** "read-1 attempt 2", or "read-1 aggregation". */
export const labelOf = (node: GraphNode): string =>
  isAggregation(node) ? `${node.task_id ?? ""} aggregation` : node.label

const kindWords: Readonly<Record<GraphNode["kind"], string>> = {
  task: "task",
  task_attempt: "attempt",
  workflow_message: "message",
  stage_attempt: "stage",
  status_event: "status",
  retry: "waits for retry",
  dlq_record: "dead letter",
  aggregation_child: "child"
}

/** The kind of the node in the words of every view. */
export const kindOf = (node: GraphNode): string => (isAggregation(node) ? "aggregation" : kindWords[node.kind])
