import { Result } from "effect"
import type { Fields } from "../../services/Broker.ts"
import type { JsonObject } from "../envelope/Envelope.ts"
import { type EnvelopeError, InvalidManualRetry } from "../envelope/Errors.ts"
import type { StatusInput } from "../envelope/StatusEvent.ts"
import * as TaskEnvelope from "../envelope/TaskEnvelope.ts"
import * as HandOverHeaders from "./HandOverHeaders.ts"
import * as RetryHeaders from "./RetryHeaders.ts"

/** Describes how a handler republishes its task under the same id. Members that are not named here stay unchanged. */
export interface ManualRetryRequest {
  readonly taskType?: string | undefined
  /** Replaces the payload. Cannot be combined with `payloadMerge`. */
  readonly payload?: JsonObject | undefined
  /** Merged into the payload at its top level. */
  readonly payloadMerge?: JsonObject | undefined
  readonly service?: string | undefined
  readonly correlationId?: string | undefined
  readonly priority?: number | undefined
  /** Sent in a message header and in statuses. At most 16,384 bytes of UTF-8. */
  readonly reason?: string | undefined
  /** The message of the status. Default: `reason`. */
  readonly message?: string | undefined
  /** Merged into the `meta` of the status. */
  readonly meta?: JsonObject | undefined
  readonly headers?: Fields | undefined
  /** More top-level members of the task. */
  readonly extraFields?: JsonObject | undefined
}

interface RetriedDelivery {
  readonly consumerName: string
  readonly correlationId: string
  readonly headers: Fields
}

/** The consumer publishes the status first, then the task, and then acknowledges the delivery. */
export interface ManualRetry {
  readonly status: StatusInput
  readonly task: TaskEnvelope.TaskEnvelope
  readonly headers: Fields
}

export const status = "manual_retrying"

export const prepare = (
  task: TaskEnvelope.TaskEnvelope,
  delivery: RetriedDelivery,
  request: ManualRetryRequest
): Result.Result<ManualRetry, InvalidManualRetry | EnvelopeError> => {
  const refused = validate(request)
  if (refused !== undefined) return Result.fail(refused)
  const next = TaskEnvelope.read(
    {
      ...task,
      correlation_id: request.correlationId ?? delivery.correlationId,
      payload: request.payload ?? { ...task.payload, ...request.payloadMerge },
      ...(request.taskType !== undefined && { task_type: request.taskType }),
      ...(request.service !== undefined && { service: request.service }),
      ...(request.priority !== undefined && { priority: request.priority }),
      ...request.extraFields
    },
    task.created_at
  )
  const lineage: HandOverHeaders.HandOverHeaders = {
    count: HandOverHeaders.ofHeaders(delivery.headers).count + 1,
    sourceConsumer: delivery.consumerName,
    previousTaskType: task.task_type,
    reason: request.reason
  }
  return Result.map(next, (next) => ({
    task: next,
    status: manualRetryStatus(next, lineage, request),
    headers: {
      ...headersToKeep(delivery.headers),
      task_id: next.task_id,
      ...HandOverHeaders.toHeaders(lineage),
      ...request.headers
    }
  }))
}

const validate = (request: ManualRetryRequest): InvalidManualRetry | undefined => {
  const of = (field: string, message: string) => new InvalidManualRetry({ field, message })
  if (request.payload !== undefined && request.payloadMerge !== undefined) {
    return of("payloadMerge", "Set either payload to replace the payload or payloadMerge to extend it, but not both.")
  }
  if (request.taskType !== undefined && request.taskType.trim() === "") {
    return of("taskType", "taskType must not be blank. Omit it to keep the current task type.")
  }
  if (request.reason !== undefined && Buffer.byteLength(request.reason) > maxReasonBytes) {
    return of(
      "reason",
      `reason has ${Buffer.byteLength(request.reason)} bytes. At most ${maxReasonBytes} bytes are allowed, because the reason is sent in a message header. Put longer texts into payload or meta.`
    )
  }
  const forbidden = Object.keys(request.extraFields ?? {}).filter((name) => reservedFields.has(name))
  return forbidden.length > 0
    ? of(
        "extraFields",
        `extraFields must not contain ${forbidden.sort().join(", ")}: these members have their own options or cannot be changed.`
      )
    : undefined
}

/** A quarter of the 64 KiB that amqplib has for headers. */
const maxReasonBytes = 16_384

const reservedFields = new Set([
  "task_id",
  "correlation_id",
  "task_type",
  "service",
  "payload",
  "priority",
  "spec_version",
  "created_at"
])

/** Removes the retry headers, because the next worker counts its own retries. */
const headersToKeep = (headers: Fields): Fields =>
  Object.fromEntries(
    Object.entries(HandOverHeaders.withoutHeaders(RetryHeaders.withoutBrokerHeaders(headers))).filter(
      ([name]) => !RetryHeaders.names.includes(name)
    )
  )

const manualRetryStatus = (
  task: TaskEnvelope.TaskEnvelope,
  lineage: HandOverHeaders.HandOverHeaders,
  request: ManualRetryRequest
): StatusInput => ({
  task_id: task.task_id,
  status,
  message: request.message ?? request.reason ?? "The task was handed over for another attempt.",
  meta: {
    ...request.meta,
    manual_retry: {
      count: lineage.count,
      source_consumer: lineage.sourceConsumer,
      ...(lineage.previousTaskType !== undefined && { previous_task_type: lineage.previousTaskType }),
      ...(lineage.reason !== undefined && { reason: lineage.reason }),
      ...(request.taskType !== undefined && { target_task_type: request.taskType })
    }
  },
  correlation_id: TaskEnvelope.correlationId(task)
})
