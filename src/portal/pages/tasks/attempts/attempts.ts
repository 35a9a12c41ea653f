import type { ExecutionGraph, Explanation, GraphNode } from "../../../api/TaskTypes.ts"
import { isAggregation, isDelivery, kindOf, labelOf, textOf } from "./nodes.ts"

/** What became of an attempt. `unknown`: nothing tells of its end. */
export type Outcome = "done" | "retried" | "dead" | "handed_over" | "running" | "cancelled" | "unknown"

export const failures: ReadonlySet<Outcome> = new Set(["retried", "dead"])

/** One delivery of a task to a worker, and what it led to. Times are milliseconds. */
export interface Attempt {
  /** The id of its node in the graph. */
  readonly id: string
  readonly taskId: string
  readonly type: string
  readonly label: string
  readonly worker: string | null
  readonly queue: string | null
  readonly start: number
  /** `undefined` while it runs, or if nothing tells of its end. */
  readonly end: number | undefined
  readonly outcome: Outcome
  /** The reason of the failure in one word. */
  readonly reason: string | null
  /** The message of the exception with which the attempt has failed. */
  readonly message: string | null
  /** The delivery brings a result to the aggregation of the parent, and is no attempt of the task. */
  readonly isAggregation: boolean
  readonly statuses: ReadonlyArray<GraphNode>
  /** Until when its retry waits: until the next attempt, or until it is due. */
  readonly retry: { readonly id: string; readonly from: number; readonly until: number | undefined } | undefined
  /** The nodes that are part of it. */
  readonly parts: ReadonlyArray<string>
}

export const timeOf = (node: { readonly timestamp: string | null } | undefined): number | undefined =>
  node?.timestamp === null || node?.timestamp === undefined ? undefined : Date.parse(node.timestamp)

/** Reads the attempts of a task and its children from its graph, in the order of the graph. */
export const attemptsOf = (
  { edges, nodes, task_id }: ExecutionGraph,
  explanation: Explanation | undefined
): ReadonlyArray<Attempt> => {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const from = Map.groupBy(edges, ({ source }) => source)
  return nodes.flatMap((node) => {
    const start = timeOf(node)
    if (!isDelivery(node) || start === undefined) return []
    const led = from.get(node.id) ?? []
    const target = (kind: string) => {
      const edge = led.find((one) => one.kind === kind)
      return edge === undefined ? undefined : byId.get(edge.target)
    }
    const statuses = led.flatMap(({ kind, target }) => {
      const status = kind === "published_status" ? byId.get(target) : undefined
      return status === undefined ? [] : [status]
    })
    const [retry, dead, next] = [target("retried_as"), target("dead_lettered_to"), target("stage_transitioned_to")]
    const handedOver = target("manual_retry_to")
    const ends = [...statuses, retry, dead, next].flatMap((one) => timeOf(one) ?? [])
    const isCurrent = node.task_id === task_id && isRunning(node, explanation)
    const outcome = outcomeOf({ retry, dead, handedOver, statuses, hasNext: next !== undefined, isCurrent })
    return [
      {
        id: node.id,
        taskId: node.task_id ?? "",
        type: typeOf(node),
        label: labelOf(node),
        worker: textOf(node.annotations["consumer_name"]),
        queue: textOf(node.annotations["queue_name"]),
        start,
        end: outcome === "running" || ends.length === 0 ? undefined : Math.max(start, ...ends),
        outcome,
        reason: textOf((dead ?? retry)?.annotations["reason"]),
        message: failures.has(outcome) ? messageOf(dead, statuses) : null,
        isAggregation: isAggregation(node),
        statuses,
        retry: retry === undefined ? undefined : retryOf(retry, from, byId, explanation),
        parts: [...statuses, retry, dead]
          .filter((one) => one !== undefined)
          .sort((one, other) => (timeOf(one) ?? 0) - (timeOf(other) ?? 0))
          .map(({ id }) => id)
      }
    ]
  })
}

const typeOf = (node: GraphNode): string =>
  isAggregation(node)
    ? kindOf(node)
    : (textOf(node.annotations["task_type"]) ?? textOf(node.annotations["stage"]) ?? "–")

/** The record of a dead letter has the message of the exception. Of a retry, the status that tells of it has. */
const messageOf = (dead: GraphNode | undefined, statuses: ReadonlyArray<GraphNode>): string | null =>
  textOf(dead?.annotations["exception_message"]) ??
  statuses.reduce<string | null>((found, { annotations }) => textOf(annotations["message"]) ?? found, null)

const isRunning = (node: GraphNode, explanation: Explanation | undefined): boolean =>
  explanation?.verdict === "being_handled" &&
  explanation.since !== null &&
  Math.abs(Date.parse(explanation.since) - (timeOf(node) ?? 0)) < 1

interface Evidence {
  readonly retry: GraphNode | undefined
  readonly dead: GraphNode | undefined
  readonly handedOver: GraphNode | undefined
  readonly statuses: ReadonlyArray<GraphNode>
  readonly hasNext: boolean
  readonly isCurrent: boolean
}

const outcomeOf = ({ dead, handedOver, hasNext, isCurrent, retry, statuses }: Evidence): Outcome => {
  if (dead !== undefined) return "dead"
  if (retry !== undefined) return "retried"
  if (handedOver !== undefined) return "handed_over"
  const last = statuses.at(-1)?.label.toLowerCase() ?? ""
  if (last.includes("cancel")) return "cancelled"
  if (last.includes("fail")) return "dead"
  if (isCurrent) return "running"
  return hasNext || (last !== "" && last !== "processing") ? "done" : "unknown"
}

const retryOf = (
  retry: GraphNode,
  from: ReadonlyMap<string, ExecutionGraph["edges"]>,
  byId: ReadonlyMap<string, GraphNode>,
  explanation: Explanation | undefined
): Attempt["retry"] => {
  const begun = timeOf(retry)
  if (begun === undefined) return undefined
  const next = from.get(retry.id)?.find(({ kind }) => kind === "received_by")
  const due = explanation?.until == null ? undefined : Date.parse(explanation.until)
  return { id: retry.id, from: begun, until: next === undefined ? due : timeOf(byId.get(next.target)) }
}
