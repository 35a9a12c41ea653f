import type { Provider } from "../../policy/routes/CanonicalRoute.ts"
import type { GatewayError } from "../GatewayError.ts"
import type { Bill } from "../usage/Billing.ts"

export interface RequestOutcome {
  readonly status: number
  readonly error: GatewayError | undefined
  readonly streamed: boolean
  readonly aborted: boolean
  /** The provider of the latest upstream attempt. Absent if it is the provider of the route. */
  readonly provider?: Provider
  /** The model that the request named, truncated and without control characters, as in the usage record. */
  readonly model?: string | undefined
  readonly fallback?: UpstreamFallback | undefined
  readonly bill: Bill
  readonly upstreamMs?: number | undefined
  readonly firstByteMs?: number
}

export interface UpstreamFallback {
  readonly from: Provider
  readonly to: Provider
  /** `http_<status>` of the first provider's response, or the error code if it sent none. */
  readonly reason: string
}
