import { isJsonObject } from "../../messaging/envelope/Envelope.ts"
import type { Attempt, Attempts } from "./Attempts.ts"
import type { TaskNodes } from "./DeliveryNodes.ts"
import type { RecordedStatus } from "./Evidence.ts"
import type { GraphBuilder } from "./GraphBuilder.ts"

/**
 * Adds the statuses of a task and the manual retries that they report. A status is connected with the latest attempt
 * before it. A status before all attempts is connected with the first attempt, because the clock of its worker may be
 * slow. In a workflow, such a status is connected with the task, because the program that starts the workflow may have
 * published it.
 *
 * Other implementations may connect a status with an attempt of another task in the graph.
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
 * Finds the two attempts of a manual retry by the worker and task types in `meta.manual_retry`. Timestamps decide only
 * without these names, because clocks may differ.
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
