import type { Effect } from "effect"
import type { Delivery } from "../../services/Broker.ts"
import type { JsonObject } from "../envelope/Envelope.ts"
import type * as TaskStatuses from "../publish/TaskStatuses.ts"
import type { DeliveryFailure } from "../retry/HandlerFailure.ts"

/** What the observations of every consumer say of a delivery. */
export interface DeliveryFields {
  /** As far as it could be read. */
  readonly task_id: string | null
}

/** A delivery on which work failed. `HeaderFields`: what the observations of its consumer say of it. */
export interface FailedDelivery<Fields extends DeliveryFields = DeliveryFields> {
  readonly delivery: Delivery
  readonly failure: DeliveryFailure
  readonly fields: Fields
  /** Left out where the delivery could not be read, as nobody knows whose status it would be. */
  readonly status?: FailureStatus
}

/** How the status of a task is published on whose delivery work failed. */
export interface FailureStatus {
  readonly about: TaskStatuses.StatusOwner
  /** Laid over the meta of a status about a retry. */
  readonly meta?: JsonObject
  /** Publishes that the task has ended, where no status about a retry says so. `text`: of the failure. */
  readonly ended?: ((text: string) => Effect.Effect<void>) | undefined
}
