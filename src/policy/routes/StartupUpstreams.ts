import { Context, Option, type Redacted } from "effect"
import type { Family } from "./CanonicalRoute.ts"
import type { UpstreamBase } from "./UpstreamBase.ts"

/** An upstream serves both families, or one of them alone. */
export type ServedFamilies = Family | "both"

/** An upstream that the environment names, or the simulator. */
export interface StartupUpstream {
  readonly name: "UPSTREAM_BASE_URL" | "UPSTREAM_OPENAI_BASE_URL" | "UPSTREAM_ANTHROPIC_BASE_URL" | "simulator"
  readonly base: UpstreamBase
  /** Sent to this upstream alone. */
  readonly serviceKey: Option.Option<Redacted.Redacted>
}

export type UpstreamsByFamily = Readonly<Record<ServedFamilies, Option.Option<StartupUpstream>>>

export const noUpstreams: UpstreamsByFamily = { both: Option.none(), a: Option.none(), b: Option.none() }

/** The upstreams of the start: where requests go for which no provider row says anything. */
export class StartupUpstreams extends Context.Service<StartupUpstreams, UpstreamsByFamily>()(
  "svc/gateway/StartupUpstreams"
) {}
