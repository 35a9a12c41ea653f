import type { PublishedStatus } from "../../src/messaging/envelope/StatusEvent.ts"

/** An event as it travels. */
export const event = (
  task: string,
  id: string,
  more: Partial<Pick<PublishedStatus, "status" | "meta" | "message" | "timestamp">> = {}
): PublishedStatus => ({
  task_id: task,
  status: "processing",
  timestamp: "2026-11-20T12:00:00Z",
  meta: {},
  correlation_id: task,
  event_id: id,
  spec_version: "1.0",
  ...more
})
