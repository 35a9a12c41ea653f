import { Context, type Option, type Redacted } from "effect"
import type { RouteLimits } from "../policy/routes/CanonicalRoute.ts"
import type { Ownership } from "../policy/routes/Ownership.ts"
import type { UpstreamBase } from "../policy/routes/UpstreamBase.ts"

export class GatewaySettings extends Context.Service<
  GatewaySettings,
  {
    /** The paths that the upstream's web interface loads, as exact paths or `/prefix/*`. */
    readonly upstreamUiPaths: ReadonlyArray<string>
    readonly directCompat: Option.Option<{ readonly base: UpstreamBase; readonly serviceKey: Redacted.Redacted }>
    /** Paths of the direct compatible upstream that clients may use, as exact paths or `/prefix/*`. */
    readonly directCompatPaths: ReadonlyArray<string>
    readonly directCompatOwnership: Ownership
    readonly directCompatLimits: RouteLimits
    readonly workerToken: Option.Option<Redacted.Redacted>
    readonly maxBufferedRequests: number
    readonly maxInflightBufferBytes: number
  }
>()("svc/process/GatewaySettings") {}
