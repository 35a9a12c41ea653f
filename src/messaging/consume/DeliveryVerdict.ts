import type { Settlement } from "../../services/Broker.ts"

export interface DeliveryVerdict {
  readonly settle: Settlement
  /**
   * Called after the delivery was settled, and not if the channel was lost before: then the broker redelivers the
   * message. Must be synchronous and cheap.
   */
  readonly settled?: () => void
  /** The kind of error, recorded in the trace of a delivery that failed. */
  readonly failure?: string
}
