import type { Execution } from "../policy/Guardrail.ts"
import type { PolicyRoute, Provider } from "../policy/routes/CanonicalRoute.ts"
import type { CostMode } from "../policy/routes/Service.ts"
import type { UpstreamObject } from "../policy/routes/UpstreamObjects.ts"

/**
 * `estimate`: the response was not read (direct mode). The reserved cost is recorded, so that lost budget counters can
 * be restored from the records.
 */
export type CostSource =
  | "upstream_passthrough"
  | "price_table"
  | "route_default"
  | "service_default_fixed"
  | "service_pricing_rule_fixed"
  | "service_default_passthrough"
  | "service_pricing_rule_passthrough"
  | "missing_upstream_cost"
  | "estimate"
  | "none"

/** `estimated` by the gateway, because the response was incomplete or reported no usage; `status_only`: no tokens. */
export type UsageSource = "reported" | "estimated" | "status_only"

export interface DenialRecord {
  readonly check: string
  readonly layer?: string
}

type Maybe<A> = A | null | undefined

/** One authenticated request: a row of `usage_events`. Until it is stored it is a line of text (`UsageRow`). */
export interface UsageRecord {
  /** Writing a record twice stores it once, because the id is unique. */
  readonly id: string
  readonly created_at: number
  readonly request_id: string
  readonly key_id: string
  readonly project_id?: Maybe<string>
  readonly team_id?: Maybe<string>
  readonly route: PolicyRoute
  readonly model?: Maybe<string>
  readonly provider: Provider
  readonly status_code: number
  readonly error_code?: Maybe<string>
  readonly latency_ms: number
  /** From sending the request to the end of the response, in milliseconds; absent if nothing was sent. */
  readonly upstream_ms?: Maybe<number>
  readonly usage_source: UsageSource
  readonly input_tokens?: Maybe<number>
  readonly output_tokens?: Maybe<number>
  readonly total_tokens?: Maybe<number>
  readonly cached_input_tokens?: Maybe<number>
  readonly cache_write_tokens?: Maybe<number>
  readonly reasoning_tokens?: Maybe<number>
  readonly cost_nanos?: Maybe<number>
  readonly cost_source: CostSource
  readonly streamed: boolean
  readonly task_id?: Maybe<string>
  readonly run_id?: Maybe<string>
  readonly trace_id?: Maybe<string>
  readonly fallback_count: number
  /** `http_<status>` or the error code of the first upstream, if a second one served the request. */
  readonly fallback_reason?: Maybe<string>
  /** For registered services only. The path is the service's own, without the query. */
  readonly service_name?: Maybe<string>
  readonly http_method?: Maybe<string>
  readonly endpoint_path?: Maybe<string>
  readonly endpoint_template?: Maybe<string>
  /** Also `none` if the gateway does not read the response (direct mode and passthrough). */
  readonly cost_mode?: Maybe<CostMode>
  readonly pricing_rule_name?: Maybe<string>
  readonly policy_version?: Maybe<number>
  readonly tools?: Maybe<boolean>
  readonly estimated_input_tokens?: Maybe<number>
  readonly denial?: Maybe<DenialRecord>
  readonly guardrail_action_count?: Maybe<number>
  /** The guardrail runs of the request, stored as rows of `guardrail_execution_events`. */
  readonly guardrails?: Maybe<ReadonlyArray<Execution>>
  readonly objects?: Maybe<ReadonlyArray<UpstreamObject>>
  /** Keyed hashes of the bodies as the client sent and received them. An incomplete body has none. */
  readonly request_hash?: Maybe<string>
  readonly response_hash?: Maybe<string>
}
