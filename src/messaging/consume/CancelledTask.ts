import { createHash } from "node:crypto"
import { Effect } from "effect"
import type { ConsumerControl, TaskCancelled } from "../control/WorkControl.ts"
import type { BrokerClient } from "../publish/BrokerClient.ts"
import * as TaskStatuses from "../publish/TaskStatuses.ts"

/** The terminal status of a task that was cancelled. */
export const status = "cancelled"

/**
 * Publishes the status of a cancelled task. The message is acknowledged afterwards. After a crash in between, the
 * redelivery publishes the status with the same event id, so that it is stored once.
 */
export const publish = (
  client: BrokerClient["Service"],
  owner: TaskStatuses.StatusOwner,
  { by, cancelId, message, reason }: TaskCancelled,
  control: ConsumerControl | undefined
): Effect.Effect<void> => {
  const content = {
    status,
    message,
    meta: { cancel_id: cancelId, cancelled_by: by, cancel_reason: reason },
    eventId: createHash("sha256").update(`${cancelId} ${owner.taskId}`).digest("hex").slice(0, 32)
  }
  return Effect.andThen(
    TaskStatuses.publish(client, owner, content, true),
    control?.confirmCancelled(owner.taskId) ?? Effect.void
  )
}
