import type { Settlement } from "../../services/Broker.ts"

export interface DeliveryVerdict {
  readonly settle: Settlement
  /** Called after the settlement was sent, and not if the channel was lost before. Must be synchronous and fast. */
  readonly settled?: () => void
  /** The value of `error.type` in the delivery's trace span. */
  readonly failure?: string
}
