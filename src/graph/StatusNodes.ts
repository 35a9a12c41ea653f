import { isJsonObject } from "../messaging/envelope/Envelope.ts"
import type { Attempt, Attempts } from "./Attempts.ts"
import type { TaskNodes } from "./DeliveryNodes.ts"
import type { RecordedStatus } from "./Evidence.ts"
import type { GraphBuilder } from "./GraphBuilder.ts"

/**
 * Draws the statuses of a task, each on the attempt that was at work then, and the hand-overs that they tell of. What was
 * said before any attempt belongs to the first one, whose worker's clock may be late; where that is of a stage it belongs
 * to the task, since the program that starts a workflow speaks before any stage does.
 *
 * In workflows other implementations take the latest stage attempt of any task in the graph: what a child says would
 * hang on its sibling's attempt, and the end of a parent on whichever child was at work last. Here they are the task's
 * own.
 */
export const addNodes = (
  drawing: GraphBuilder,
  { attempts, node, taskId }: TaskNodes,
  statuses: ReadonlyArray<RecordedStatus>
): void => {
  const [first] = attempts.all
  const fallbackAttempt = first?.stage === null ? first : undefined
  for (const [index, seen] of statuses.entries()) {
    const { message, meta, status } = seen
    const annotations = { status, message, meta }
    const id = `status:${taskId}:${index + 1}`
    const event = drawing.addNode(id, "status_event", taskId, seen, { label: status, annotations })
    const by = attempts.latestAt(seen.at) ?? fallbackAttempt
    drawing.addEdge(by?.id ?? node, "published_status", event, seen)
    if (status.toLowerCase() !== "manual_retrying") continue
    const handedOver = handOver(attempts, seen)
    if (handedOver !== undefined) {
      const [from, to] = handedOver
      drawing.addEdge(from.id, "manual_retry_to", to.id, seen)
    }
  }
}

/**
 * Between whom a task was handed over. `meta.manual_retry` names the worker that did it and the type of task that the next
 * one takes: the next is then told by its place behind the first, as its clock may be late. Without it there is the time.
 */
const handOver = (attempts: Attempts, { at, meta }: RecordedStatus): readonly [Attempt, Attempt] | undefined => {
  const { manual_retry: lineage } = meta
  const begun = attempts.latestAt(at)
  if (begun === undefined) return undefined
  if (!isJsonObject(lineage)) return pair(begun, attempts.firstAfter(at))
  const type = text(lineage["previous_task_type"])
  const consumer = text(lineage["source_consumer"])
  const from = attempts.ofWorker(consumer, type).latestAt(at) ?? begun
  return pair(from, attempts.ofType(text(lineage["target_task_type"]) ?? type).nextAfter(from))
}

const pair = (from: Attempt, to: Attempt | undefined) => (to === undefined ? undefined : ([from, to] as const))

const text = (value: unknown): string | null => (typeof value === "string" ? value : null)
