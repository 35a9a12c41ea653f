import type { Provider } from "../../policy/routes/CanonicalRoute.ts"
import type { GatewayError } from "../GatewayError.ts"
import type { Bill } from "../usage/Billing.ts"

/** How a request ended. */
export interface RequestOutcome {
  readonly status: number
  readonly error: GatewayError | undefined
  readonly streamed: boolean
  /** The client has seen the beginning of an answer and not its end. */
  readonly aborted: boolean
  /** Who answered; none when the gateway refused. */
  readonly provider?: Provider
  /** The model that the request names, fit for records. */
  readonly model?: string | undefined
  readonly fallback?: UpstreamFallback | undefined
  readonly bill: Bill
  readonly upstreamMs?: number | undefined
  readonly firstByteMs?: number
}

/** One upstream in the place of another. */
export interface UpstreamFallback {
  readonly from: Provider
  readonly to: Provider
  /** `http_<status>`, or the gateway's code of what went wrong. */
  readonly reason: string
}
