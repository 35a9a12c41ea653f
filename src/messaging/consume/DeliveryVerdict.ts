import type { Settlement } from "../../services/Broker.ts"

export interface DeliveryVerdict {
  readonly settle: Settlement
  /** Not called if the channel was lost before, because the broker then redelivers. Must be synchronous and cheap. */
  readonly settled?: () => void
  /** The kind of error, recorded in the trace of a delivery that failed. */
  readonly failure?: string
}
