import { Context, Option, type Redacted } from "effect"
import type { Family } from "./CanonicalRoute.ts"
import type { UpstreamBase } from "./UpstreamBase.ts"

/** An upstream serves both families, or one of them alone. */
export type Served = Family | "both"

/** An upstream that the environment names, or the simulator. */
export interface StartupUpstream {
  readonly name: "UPSTREAM_BASE_URL" | "UPSTREAM_OPENAI_BASE_URL" | "UPSTREAM_ANTHROPIC_BASE_URL" | "simulator"
  readonly base: UpstreamBase
  /** Sent to this upstream alone. */
  readonly serviceKey: Option.Option<Redacted.Redacted>
}

export type ByServed = Readonly<Record<Served, Option.Option<StartupUpstream>>>

export const none: ByServed = { both: Option.none(), a: Option.none(), b: Option.none() }

/** The upstreams of the start: where requests go for which no provider row says anything. */
export class StartupUpstreams extends Context.Service<StartupUpstreams, ByServed>()("svc/gateway/StartupUpstreams") {}
