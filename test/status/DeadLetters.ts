import type { DeadLetterRecord } from "../../src/messaging/failure/DeadLetter.ts"

/** A record of `{"n":<n>}`; its id says which. */
export const deadLetter = (n: number | string, changes: Partial<DeadLetterRecord> = {}): DeadLetterRecord => ({
  dlq_id: `id-${n}`,
  queue_name: "tasks.dlq",
  source_queue_name: "tasks",
  retry_queue_name: "tasks.retry.30000ms.quorum",
  task_id: `task-${n}`,
  correlation_id: `correlation-${n}`,
  reason: "handler_error",
  exception_type: "RangeError",
  retry_attempt: 3,
  max_retries: 3,
  headers: {
    task_id: `task-${n}`,
    "x-svc-retry-attempt": 3,
    "x-svc-max-retries": 3,
    "x-svc-source-queue": "tasks",
    "x-svc-failure-reason": "handler_error",
    "x-svc-exception-type": "RangeError",
    "x-death": [{ count: 3 }]
  },
  content_type: "application/json",
  body: { n },
  body_encoding: "json",
  raw_body_b64: Buffer.from(JSON.stringify({ n })).toString("base64"),
  dead_lettered_at: "2026-11-20T12:00:00.000000+00:00",
  state: "dead_lettered",
  replay_count: 0,
  replayed_at: null,
  replay_target_queue_name: null,
  properties: { priority: 5, message_id: `message-${n}` },
  ...changes
})
