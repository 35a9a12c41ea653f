import { Context, type Option, type Redacted } from "effect"
import type { RouteLimits } from "../policy/routes/CanonicalRoute.ts"
import type { Ownership } from "../policy/routes/Ownership.ts"
import type { UpstreamBase } from "../policy/routes/UpstreamBase.ts"

/** What the environment decides for a gateway process. */
export class GatewaySettings extends Context.Service<
  GatewaySettings,
  {
    /** What the upstream's UI loads, by the names that it has at this upstream: exact paths, and `/prefix/*`. */
    readonly upstreamUiPaths: ReadonlyArray<string>
    readonly directCompat: Option.Option<{ readonly base: UpstreamBase; readonly serviceKey: Redacted.Redacted }>
    /** What of its paths is open: exact ones, and `/prefix/*`. */
    readonly directCompatPaths: ReadonlyArray<string>
    /** Who may use what a key creates there. */
    readonly directCompatOwnership: Ownership
    readonly directCompatLimits: RouteLimits
    readonly workerToken: Option.Option<Redacted.Redacted>
    readonly maxBufferedRequests: number
    readonly maxInflightBufferBytes: number
  }
>()("svc/process/GatewaySettings") {}
