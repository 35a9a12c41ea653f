import { isJsonObject } from "../../messaging/envelope/Envelope.ts"
import type { DeadLetterRecord } from "../../messaging/failure/DeadLetter.ts"

/** The failure reasons that recur whenever the same message is replayed. */
const permanent: ReadonlySet<string> = new Set([
  "malformed_json",
  "invalid_envelope",
  "mixed_task_type_batch",
  "unknown_task_type",
  "unsupported_action",
  "payload_schema_violation"
])

export const of = (record: DeadLetterRecord) => {
  const body = isJsonObject(record.body) ? record.body : {}
  return {
    failure: {
      reason: record.reason,
      exception_type: record.exception_type,
      exception_message: record.exception_message ?? null,
      exception_stack: record.exception_stack ?? null,
      terminal_retry_attempt: record.retry_attempt
    },
    retry: {
      attempt: record.retry_attempt,
      max_retries: record.max_retries,
      source_queue_name: record.source_queue_name,
      retry_queue_name: record.retry_queue_name
    },
    ownership: { task_id: record.task_id, correlation_id: record.correlation_id },
    envelope: {
      task_type: text(body["task_type"]),
      workflow_stage: text(body["stage"]),
      action: text(body["action"]),
      content_type: record.content_type,
      body_encoding: record.body_encoding
    },
    replay: { recommended_action: "review_before_replay", warnings: warningsOf(record) }
  }
}

const warningsOf = ({ max_retries, reason, retry_attempt, state }: DeadLetterRecord): ReadonlyArray<string> => [
  ...(permanent.has(reason)
    ? [`The same message will fail with ${reason} again: fix the worker first, or edit the message.`]
    : []),
  ...(max_retries > 0 && retry_attempt >= max_retries && !permanent.has(reason)
    ? [`The message failed ${retry_attempt + 1} times: make sure that the cause is resolved before you replay it.`]
    : []),
  ...(state === "replay_unknown"
    ? [
        "It is unknown whether an earlier replay was published: check whether the task ran before you force another one."
      ]
    : []),
  ...(state === "replayed" ? ["The message was replayed before. To publish it again, use force=true."] : [])
]

const text = (value: unknown): string | null => (typeof value === "string" ? value : null)
