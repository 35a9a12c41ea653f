import type { ExecutionGraph, GraphEdge, GraphNode } from "../../../../api/TaskTypes.ts"
import type { Drawn, DrawnEdge } from "../../../../shared/graph/drawn.ts"
import { meaningOfTaskStatus } from "../../../../shared/tasks/meanings.ts"
import { countText, middleText } from "../../../../shared/words/format.ts"
import { kindOf, labelOf } from "../../attempts/nodes.ts"
import { foldRuns } from "./runs.ts"

/** More children of one type are drawn as one node. */
export const mostChildren = 50

/** Folds statuses into their attempts, retries into their edges, and many children and long runs into one node each. */
export const fold = ({ edges, nodes, task_id }: ExecutionGraph) => {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const children = nodes.filter(({ kind }) => kind === "aggregation_child")
  const isCrowd = children.length > mostChildren
  const own = (node: GraphNode | undefined) =>
    !isCrowd || node?.task_id === task_id || node?.annotations["relation"] === "parent"
  const statuses = new Map<string, Array<GraphNode>>()
  const next = new Map<string, GraphEdge>()
  for (const edge of edges) {
    const target = byId.get(edge.target)
    if (edge.kind === "published_status" && target !== undefined) {
      const list = statuses.get(edge.source)
      if (list === undefined) statuses.set(edge.source, [target])
      else list.push(target)
    }
    if (byId.get(edge.source)?.kind === "retry") next.set(edge.source, edge)
  }
  const drawn: Array<Drawn> = nodes.flatMap((node) => {
    if (!own(node) || node.kind === "status_event") return []
    if (node.kind === "retry" && next.has(node.id)) return []
    return [drawnOf(node, statuses.get(node.id) ?? [], task_id)]
  })
  const shown = new Set(drawn.map(({ id }) => id))
  const lines = edges.flatMap((edge): ReadonlyArray<DrawnEdge> => {
    const retry = byId.get(edge.target)
    const passed = edge.kind === "retried_as" ? next.get(edge.target) : undefined
    const target = passed?.target ?? edge.target
    if (!shown.has(edge.source) || !shown.has(target)) return []
    // the attempt after a retry is received from the retry, not from the task once more
    if (edge.kind === "received_by" && edge.source === `task:${task_id}` && isRetried(edge.target, edges, byId))
      return []
    const label =
      passed === undefined
        ? edgeWords[edge.kind]
        : `${retry?.label ?? "retry"} · ${String(retry?.annotations["reason"] ?? "")}`
    // a child stands to the right of its parent, although its result goes back to it
    const isChild = edge.kind === "aggregated_into"
    return [
      {
        id: `${edge.source} ${edge.kind} ${target}`,
        source: isChild ? target : edge.source,
        target: isChild ? edge.source : target,
        label,
        isDashed: passed !== undefined
      }
    ]
  })
  if (!isCrowd) return foldRuns({ nodes: drawn, edges: lines })
  const crowd = crowdOf(children, nodes)
  return foldRuns({
    nodes: [...drawn, crowd],
    edges: [
      ...lines,
      { id: "children", source: `task:${task_id}`, target: crowd.id, label: edgeWords.aggregated_into, isDashed: false }
    ]
  })
}

const retriedTargets = new WeakMap<ReadonlyArray<GraphEdge>, ReadonlySet<string>>()

const isRetried = (target: string, edges: ReadonlyArray<GraphEdge>, byId: ReadonlyMap<string, GraphNode>): boolean => {
  const known = retriedTargets.get(edges)
  if (known !== undefined) return known.has(target)
  const found = new Set(
    edges.flatMap((edge) =>
      byId.get(edge.source)?.kind === "retry" || edge.kind === "manual_retry_to" ? [edge.target] : []
    )
  )
  retriedTargets.set(edges, found)
  return found.has(target)
}

const edgeWords: Readonly<Record<GraphEdge["kind"], string>> = {
  received_by: "",
  published_status: "",
  retried_as: "retry",
  dead_lettered_to: "dead-lettered",
  manual_retry_to: "handed over",
  entered_stage: "",
  stage_transitioned_to: "next stage",
  aggregated_into: "child"
}

const text = (value: unknown): ReadonlyArray<string> => (typeof value === "string" && value !== "" ? [value] : [])

const mostTitle = 26

/** The number of an attempt must be seen, and the id before it is that of the page, or of the node before. */
const titleOf = (node: GraphNode, pageTask: string): string => {
  const { kind, task_id } = node
  const label = labelOf(node)
  if (kind !== "task_attempt" || task_id === null || !label.startsWith(`${task_id} `))
    return middleText(label, mostTitle)
  const attempt = label.slice(task_id.length + 1)
  return task_id === pageTask ? attempt : `${middleText(task_id, mostTitle - attempt.length - 1)} ${attempt}`
}

const drawnOf = (node: GraphNode, statuses: ReadonlyArray<GraphNode>, pageTask: string): Drawn => {
  const last = statuses.at(-1)
  const names = statuses.map(({ label }) => label)
  const path = names.filter((name, place) => name !== names[place - 1])
  return {
    id: node.id,
    title: titleOf(node, pageTask),
    fullTitle: labelOf(node),
    lines: [
      [kindOf(node), ...text(node.annotations["consumer_name"])].join(" · "),
      ...(path.length === 0
        ? []
        : [path.length > 4 ? `${path.slice(0, 3).join(" → ")} … ${path.at(-1)}` : path.join(" → ")]),
      ...text(node.annotations["reason"])
    ],
    meaning:
      node.kind === "dlq_record"
        ? "bad"
        : node.kind === "retry"
          ? "waiting"
          : last === undefined
            ? "idle"
            : meaningOfTaskStatus(last.label),
    parts: statuses.map(({ id }) => id)
  }
}

/** "9,950 completed, 48 processing, 2 failed": many children in one node. */
const crowdOf = (children: ReadonlyArray<GraphNode>, nodes: ReadonlyArray<GraphNode>): Drawn => {
  const latest = new Map<string, string>()
  for (const { kind, label, task_id } of nodes)
    if (kind === "status_event" && task_id !== null) latest.set(task_id, label)
  const counts = Map.groupBy(children, ({ task_id }) => latest.get(task_id ?? "") ?? "without a status")
  const words = [...counts].map(([status, { length }]) => `${countText(length)} ${status}`)
  const hasFailed = [...counts.keys()].some((status) => meaningOfTaskStatus(status) === "bad")
  return {
    id: "children",
    title: `${countText(children.length)} children`,
    lines: words.slice(0, 5),
    meaning: hasFailed ? "bad" : "good",
    parts: children.map(({ id }) => id)
  }
}
