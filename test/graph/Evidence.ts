import type { ExecutionGraph, GraphEvidence } from "../../src/graph/ExecutionGraph.ts"
import type { ObservationHistory } from "../../src/graph/observations/ObservationStore.ts"
import { ofMillis, toMillis, withOffset } from "../../src/messaging/envelope/Timestamp.ts"
import { encode, type FieldsOf, type Observed, of } from "../../src/messaging/observe/Observation.ts"
import type { DeadLetterSummary } from "../../src/status/dead-letters/DeadLetterStore.ts"
import type { StatusHistory } from "../../src/status/store/StatusStore.ts"

const ten = Date.parse("2026-04-06T10:00:00Z")

/** Seconds after ten o'clock. */
export const at = (seconds: number) => ofMillis(ten + Math.round(seconds * 1000))

export const statuses = (
  taskId: string,
  ...events: ReadonlyArray<readonly [status: string, seconds: number, meta?: Record<string, unknown>]>
): StatusHistory => ({
  events: events.map(([status, seconds, meta = {}], index) => ({
    sequence: index + 1,
    eventId: `${taskId}-${index + 1}`,
    status,
    json: JSON.stringify({ task_id: taskId, status, timestamp: at(seconds), meta })
  })),
  newest: events.length,
  oldest: Math.min(events.length, 1)
})

export const observations = (...events: ReadonlyArray<Observed>): ObservationHistory => ({
  events: events.map((event, index) => ({ sequence: index + 1, json: encode(event) })),
  oldest: Math.min(events.length, 1)
})

const task = "task-123"

export const received = (seconds: number, more: Partial<FieldsOf<"TaskMessageReceived">> = {}) =>
  of("TaskMessageReceived", at(seconds), {
    consumer_name: "svc-task-consumer",
    queue_name: "tasks.queue",
    task_id: task,
    delivery_tag: 1,
    redelivered: false,
    correlation_id: "corr-123",
    retry_attempt: 0,
    task_type: null,
    ...more
  })

export const acked = (seconds: number, more: Partial<FieldsOf<"TaskMessageAcked">> = {}) =>
  of("TaskMessageAcked", at(seconds), {
    consumer_name: "svc-task-consumer",
    queue_name: "tasks.queue",
    task_id: task,
    correlation_id: null,
    retry_attempt: 0,
    task_type: null,
    ...more
  })

const scheduled = {
  consumer_name: "svc-task-consumer",
  task_id: task,
  source_queue_name: "tasks.queue",
  max_retries: 1,
  reason: "handler_error",
  correlation_id: "corr-123",
  task_type: null
}

export const retried = (seconds: number, more: Partial<FieldsOf<"ConsumerRetryScheduled">> = {}) =>
  of("ConsumerRetryScheduled", at(seconds), {
    ...scheduled,
    queue_name: "tasks.queue.retry.500ms.quorum",
    retry_attempt: 1,
    ...more
  })

export const deadLettered = (seconds: number, more: Partial<FieldsOf<"ConsumerDeadLetterPublished">> = {}) =>
  of("ConsumerDeadLetterPublished", at(seconds), {
    ...scheduled,
    queue_name: "tasks.queue.dlq",
    retry_attempt: 1,
    ...more
  })

const message = { consumer_name: "svc-workflow-consumer", routing_key: null, task_id: task, correlation_id: task }

export const staged = (
  seconds: number,
  stage: string,
  messageId: string | null,
  more: Partial<FieldsOf<"WorkflowMessageReceived">> = {}
) =>
  of("WorkflowMessageReceived", at(seconds), {
    ...message,
    queue_name: `${stage}.queue`,
    stage,
    message_id: messageId,
    origin_stage: null,
    delivery_tag: 1,
    redelivered: false,
    retry_attempt: 0,
    ...more
  })

export const handedOver = (seconds: number, origin: string | null, stage: string, messageId: string) =>
  of("WorkflowMessagePublished", at(seconds), {
    ...message,
    queue_name: `${origin}.queue`,
    stage,
    routing_key: `${stage}.in`,
    message_id: messageId,
    origin_stage: origin
  })

export const record = (seconds: number, more: Partial<DeadLetterSummary> = {}): DeadLetterSummary => ({
  dlq_id: `dlq-${seconds}`,
  queue_name: "tasks.queue.dlq",
  source_queue_name: "tasks.queue",
  retry_queue_name: "tasks.queue.retry.500ms.quorum",
  task_id: task,
  correlation_id: "corr-123",
  reason: "handler_error",
  exception_type: "Error",
  retry_attempt: 1,
  max_retries: 1,
  content_type: "application/json",
  body_encoding: "json",
  dead_lettered_at: withOffset(at(seconds)),
  state: "dead_lettered",
  replay_count: 0,
  replayed_at: null,
  replay_target_queue_name: null,
  ...more
})

export const evidence = (more: Partial<GraphEvidence> = {}): GraphEvidence => ({
  topology: { kind: "shared_tasks_shared_status" },
  taskId: task,
  statuses: new Map(),
  observations: new Map(),
  deadLetters: [],
  relatedTaskIds: [],
  ...more
})

/** Seconds after ten o'clock, or nothing. */
const seconds = (timestamp: string | null) => (timestamp === null ? null : (toMillis(timestamp) - ten) / 1000)

/** Every node as its id and when it was, in the graph's order. */
export const nodesOf = ({ nodes }: ExecutionGraph) => nodes.map(({ id, timestamp }) => [id, seconds(timestamp)])

/** Every edge as `source kind target`, and when it was, in the graph's order. */
export const edgesOf = ({ edges }: ExecutionGraph) =>
  edges.map(({ kind, source, target, timestamp }) => [`${source} ${kind} ${target}`, seconds(timestamp)])
