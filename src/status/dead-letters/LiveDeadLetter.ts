import type { Detail } from "../../live/Digest.ts"
import type { DeadLetterRecord } from "../../messaging/failure/DeadLetter.ts"

/** Describes a new dead letter to operators who follow them. The rest is in its record. */
export const describe = (record: DeadLetterRecord): Detail => ({
  at: Date.parse(record.dead_lettered_at),
  dlq_id: record.dlq_id,
  queue: record.queue_name,
  source_queue: record.source_queue_name,
  task_id: record.task_id?.slice(0, maxLength) ?? null,
  reason: record.reason.slice(0, maxLength),
  exception_type: record.exception_type?.slice(0, maxLength) ?? null,
  attempt: record.retry_attempt
})

const maxLength = 256
