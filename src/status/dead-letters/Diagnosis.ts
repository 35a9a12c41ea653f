import { isJsonObject } from "../../messaging/envelope/Envelope.ts"
import type { DeadLetterRecord } from "../../messaging/failure/DeadLetter.ts"

/** Failures that a replay of the same message meets again. */
const permanent: ReadonlySet<string> = new Set([
  "malformed_json",
  "invalid_envelope",
  "mixed_task_type_batch",
  "unknown_task_type",
  "unsupported_action",
  "payload_schema_violation"
])

/** What an operator wants to know before a replay, out of the record alone. */
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
    ? [`The same message fails with ${reason} again: correct the worker first, or publish a corrected message.`]
    : []),
  ...(max_retries > 0 && retry_attempt >= max_retries && !permanent.has(reason)
    ? [`It failed ${retry_attempt + 1} times: find out whether what it failed for is over.`]
    : []),
  ...(state === "replay_unknown"
    ? ["Whether an earlier replay was published is unknown: look whether the task ran before it is forced."]
    : []),
  ...(state === "replayed" ? ["It was replayed before: force=true publishes it once more."] : [])
]

const text = (value: unknown): string | null => (typeof value === "string" ? value : null)
