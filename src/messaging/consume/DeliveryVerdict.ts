import type { Settlement } from "../../services/Broker.ts"

export interface DeliveryVerdict {
  readonly settle: Settlement
  /** Called after the settlement was sent. Not called if the channel was lost before. Must return quickly. */
  readonly settled?: () => void
  /** The value of `error.type` in the delivery's trace span. */
  readonly failure?: string
}
