import { Context, Option, type Redacted } from "effect"
import type { Family } from "./CanonicalRoute.ts"
import type { UpstreamBase } from "./UpstreamBase.ts"

export type ServedFamilies = Family | "both"

export interface StartupUpstream {
  readonly name: "UPSTREAM_BASE_URL" | "UPSTREAM_OPENAI_BASE_URL" | "UPSTREAM_ANTHROPIC_BASE_URL" | "simulator"
  readonly base: UpstreamBase
  readonly serviceKey: Option.Option<Redacted.Redacted>
}

export type UpstreamsByFamily = Readonly<Record<ServedFamilies, Option.Option<StartupUpstream>>>

export const noUpstreams: UpstreamsByFamily = { both: Option.none(), a: Option.none(), b: Option.none() }

/** The upstreams from environment variables. They serve requests for which no provider row exists. */
export class StartupUpstreams extends Context.Service<StartupUpstreams, UpstreamsByFamily>()(
  "svc/gateway/StartupUpstreams"
) {}
