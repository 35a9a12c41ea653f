import type { Effect } from "effect"
import type { Delivery } from "../../services/Broker.ts"
import type { JsonObject } from "../envelope/Envelope.ts"
import type * as TaskStatuses from "../publish/TaskStatuses.ts"
import type { DeliveryFailure } from "../retry/HandlerFailure.ts"

export interface DeliveryFields {
  readonly task_id: string | null
}

export interface FailedDelivery<Fields extends DeliveryFields = DeliveryFields> {
  readonly delivery: Delivery
  readonly failure: DeliveryFailure
  readonly fields: Fields
  /** Missing if the body is unreadable, because the task id is then unknown. */
  readonly status?: FailureStatus
}

export interface FailureStatus {
  readonly about: TaskStatuses.StatusOwner
  /** Overrides `meta` members of the retry or dead-letter status. */
  readonly meta?: JsonObject
  /**
   * Publishes the failure as the task's final status. Called if there is no retry policy, or if the message was
   * dead-lettered while retry statuses are disabled. `text` is the message of the failure.
   */
  readonly ended?: ((text: string) => Effect.Effect<void>) | undefined
}
