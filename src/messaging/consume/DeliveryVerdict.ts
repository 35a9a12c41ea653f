import type { Settlement } from "../../services/Broker.ts"

/** How a delivery is settled, and what follows when it was. */
export interface DeliveryVerdict {
  readonly settle: Settlement
  /** Not called where the settlement came too late: then somebody gets the delivery again. Plain and cheap. */
  readonly settled?: () => void
  /** Where the message is not done with: by what kind of error, for its trace. */
  readonly failure?: string
}
