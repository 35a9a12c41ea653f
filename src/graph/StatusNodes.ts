import { isJsonObject } from "../messaging/envelope/Envelope.ts"
import type { Attempt, Attempts } from "./Attempts.ts"
import type { TaskNodes } from "./DeliveryNodes.ts"
import type { RecordedStatus } from "./Evidence.ts"
import type { GraphBuilder } from "./GraphBuilder.ts"

/**
 * Adds the statuses of a task and the manual retries that they report. A status belongs to the attempt in progress at
 * its time. A status before the first attempt belongs to that attempt, because the clock of its worker may be slow; in
 * a workflow it belongs to the task, because the program that starts the workflow publishes statuses too.
 *
 * Other implementations connect a status with the latest stage attempt of any task in the graph, so a status of one
 * child may belong to another child there.
 */
export const addNodes = (
  builder: GraphBuilder,
  { attempts, node, taskId }: TaskNodes,
  statuses: ReadonlyArray<RecordedStatus>
): void => {
  const [first] = attempts.all
  const fallbackAttempt = first?.stage === null ? first : undefined
  for (const [index, seen] of statuses.entries()) {
    const { message, meta, status } = seen
    const annotations = { status, message, meta }
    const id = `status:${taskId}:${index + 1}`
    const event = builder.addNode(id, "status_event", taskId, seen, { label: status, annotations })
    const by = attempts.latestAt(seen.at) ?? fallbackAttempt
    builder.addEdge(by?.id ?? node, "published_status", event, seen)
    if (status.toLowerCase() !== "manual_retrying") continue
    const handedOver = handOver(attempts, seen)
    if (handedOver !== undefined) {
      const [from, to] = handedOver
      builder.addEdge(from.id, "manual_retry_to", to.id, seen)
    }
  }
}

/**
 * Finds the two attempts of a manual retry. `meta.manual_retry` names the worker and the next task type. The times
 * decide only without these names, because clocks may differ.
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
