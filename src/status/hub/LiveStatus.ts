import type { Detail } from "../../live/Digest.ts"
import type { PublishedStatus } from "../../messaging/envelope/StatusEvent.ts"
import * as Timestamp from "../../messaging/envelope/Timestamp.ts"

/** Describes a status to operators who follow tasks. The rest is in the history of the task. */
export const describe = (event: PublishedStatus): Detail => ({
  at: Timestamp.toMillis(event.timestamp),
  task_id: event.task_id.slice(0, maxLength),
  task_type: event.task_type?.slice(0, maxLength) ?? null,
  status: event.status.slice(0, maxLength),
  event_id: event.event_id.slice(0, maxLength)
})

/** Other programs may publish longer names. */
const maxLength = 256
