import type { ExecutionGraph, GraphNode } from "../../../../api/TaskTypes.ts"
import { meaningOfTaskStatus } from "../../../../shared/tasks/meanings.ts"
import type { Meaning } from "../../../../shared/words/StatusWord.tsx"
import { type Attempt, timeOf } from "../../attempts/attempts.ts"

/** One thing that happened on a lifeline. */
export interface Step {
  readonly id: string
  readonly lifeline: string
  readonly words: string
  readonly meaning: Meaning
  readonly at: number | undefined
  /** The clock says that it was before the step before: the order is that of the messages. */
  readonly isBeforeClock: boolean
}

const unknownWorker = "unknown worker"

/** What happened to the task in the order of its messages, whatever the clocks of the workers say. */
export const stepsOf = (graph: ExecutionGraph, attempts: ReadonlyArray<Attempt>): ReadonlyArray<Step> => {
  const byId = new Map(graph.nodes.map((node) => [node.id, node]))
  const own = attempts.filter(({ taskId }) => taskId === graph.task_id)
  const published = new Set(own.flatMap(({ parts }) => parts))
  const early = graph.nodes
    .filter(({ id, kind, task_id }) => kind === "status_event" && task_id === graph.task_id && !published.has(id))
    .map((node) => stepOf(node, "publisher", node.label))
  const during = own.flatMap((attempt) => {
    const lifeline = attempt.worker ?? unknownWorker
    const node = byId.get(attempt.id)
    const received =
      node === undefined
        ? []
        : [{ ...stepOf(node, lifeline, `receives ${attempt.label}`), meaning: "working" as const }]
    return [...received, ...attempt.parts.flatMap((part) => partOf(byId.get(part), lifeline))]
  })
  let before: Step | undefined
  return [...early, ...during].map((step) => {
    // one worker has one clock
    const isBeforeClock = before !== undefined && before.lifeline !== step.lifeline && (step.at ?? 0) < (before.at ?? 0)
    before = step
    return { ...step, isBeforeClock }
  })
}

const partOf = (node: GraphNode | undefined, lifeline: string): ReadonlyArray<Step> => {
  if (node === undefined) return []
  const reason = typeof node.annotations["reason"] === "string" ? `: ${node.annotations["reason"]}` : ""
  switch (node.kind) {
    case "retry":
      return [{ ...stepOf(node, lifeline, `schedules ${node.label}${reason}`), meaning: "waiting" }]
    case "dlq_record":
      return [{ ...stepOf(node, lifeline, `dead-letters it${reason}`), meaning: "bad" }]
    default:
      return [stepOf(node, lifeline, node.label)]
  }
}

const stepOf = (node: GraphNode, lifeline: string, words: string): Step => ({
  id: node.id,
  lifeline,
  words,
  meaning: meaningOfTaskStatus(node.label),
  at: timeOf(node),
  isBeforeClock: false
})
