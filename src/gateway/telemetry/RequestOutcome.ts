import type { Provider } from "../../policy/routes/CanonicalRoute.ts"
import type { GatewayError } from "../GatewayError.ts"
import type { Bill } from "../usage/Billing.ts"

export interface RequestOutcome {
  readonly status: number
  readonly error: GatewayError | undefined
  readonly streamed: boolean
  readonly aborted: boolean
  /** The provider of the latest exchange. Default: the provider of the route. */
  readonly provider?: Provider
  /** The requested model as the usage record stores it: truncated, without control characters. */
  readonly model?: string | undefined
  readonly fallback?: UpstreamFallback | undefined
  readonly bill: Bill
  readonly upstreamMs?: number | undefined
  readonly firstByteMs?: number
}

export interface UpstreamFallback {
  readonly from: Provider
  readonly to: Provider
  /** `http_<status>`, or the error code of the first exchange. */
  readonly reason: string
}
