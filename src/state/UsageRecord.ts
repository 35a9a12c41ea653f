import type { Execution } from "../policy/Guardrail.ts"
import type { PolicyRoute, Provider } from "../policy/routes/CanonicalRoute.ts"
import type { CostMode } from "../policy/routes/Service.ts"
import type { UpstreamObject } from "../policy/routes/UpstreamObjects.ts"

/**
 * The source of a record's cost. `estimate`: in direct mode the gateway does not read the response and records the
 * reserved cost. Lost budget counters can then be restored from the records.
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

/**
 * The source of a record's token counts. `estimated`: the response was incomplete or reported no usage. `status_only`:
 * the record has no token counts.
 */
export type UsageSource = "reported" | "estimated" | "status_only"

export interface DenialRecord {
  readonly check: string
  readonly layer?: string
  /** Only if a counter refused the request. */
  readonly amounts?: DeniedAmounts
}

/** The amounts of a request that did not fit a limit, in requests, tokens or nano-dollars. `used` includes reservations. */
export interface DeniedAmounts {
  readonly wanted: number
  readonly used: number
  readonly limit: number
}

type Maybe<A> = A | null | undefined

/** The record of one authenticated request. It is a `UsageRow` in Redis, and later a row of `usage_events`. */
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
  /** Milliseconds from sending the request upstream to the end of the response. Absent if the gateway sent nothing. */
  readonly upstream_ms?: Maybe<number>
  /** Milliseconds from the start of the request to the first byte of the upstream's response. */
  readonly first_byte_ms?: Maybe<number>
  /** The part of `latency_ms` that is not the upstream's. Absent if the gateway sent nothing. */
  readonly gateway_ms?: Maybe<number>
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
  /** The subject of the verified identity that came with the key. */
  readonly subject?: Maybe<string>
  /** This field and the next two are what the client says of itself. */
  readonly end_user?: Maybe<string>
  readonly session_id?: Maybe<string>
  /** The class of the user agent, such as `openai-python`. */
  readonly client?: Maybe<string>
  readonly fallback_count: number
  /** The error of the first upstream (`http_<status>` or a code). Set if a second upstream served the request. */
  readonly fallback_reason?: Maybe<string>
  /** This field and the next three are set only for registered services. `endpoint_path` has no query. */
  readonly service_name?: Maybe<string>
  readonly http_method?: Maybe<string>
  readonly endpoint_path?: Maybe<string>
  readonly endpoint_template?: Maybe<string>
  /** Also `none` in direct mode and passthrough, because the gateway does not read these responses. */
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
  /** Keyed hashes of the bodies that the client sent and received. An incomplete body has no hash. */
  readonly request_hash?: Maybe<string>
  readonly response_hash?: Maybe<string>
}
