import type { Execution } from "../policy/Guardrail.ts"
import type { PolicyRoute, Provider } from "../policy/routes/CanonicalRoute.ts"
import type { CostMode } from "../policy/routes/Service.ts"
import type { UpstreamObject } from "../policy/routes/UpstreamObjects.ts"

/**
 * Where the cost of a record comes from. `price_table` is the operator's; `estimate` is what a budget counts for an answer
 * that nobody reads (direct mode), so that a budget that Redis has lost is restored from the records.
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
 * - `reported`: the upstream's own numbers.
 * - `estimated`: the upstream said nothing, or the answer was cut; the gateway's guess.
 * - `status_only`: the record has no tokens (direct mode, routes without tokens, refusals).
 */
export type UsageSource = "reported" | "estimated" | "status_only"

/** What a record says of a request that a policy denied: the check, and the layer that it came from. */
export interface DenialRecord {
  readonly check: string
  readonly layer?: string
}

/** Nothing to say is NULL in the table. */
type Maybe<A> = A | null | undefined

/** One authenticated request: a row of `usage_events`, and, as a line (`UsageRow`), what waits for the database. */
export interface UsageRecord {
  /** The gateway's own, unique; writing a record twice is writing it once. */
  readonly id: string
  /** Epoch milliseconds. */
  readonly created_at: number
  readonly request_id: string
  readonly key_id: string
  readonly project_id?: Maybe<string>
  /** The key's team. */
  readonly team_id?: Maybe<string>
  readonly route: PolicyRoute
  readonly model?: Maybe<string>
  readonly provider: Provider
  readonly status_code: number
  /** The gateway's code, when the gateway and not the upstream decided the outcome. */
  readonly error_code?: Maybe<string>
  readonly latency_ms: number
  /** From sending the request on to the end of the answer; absent where nothing was sent. */
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
  /** `http_<status>` or the gateway's code: why the upstream that was asked first did not answer. */
  readonly fallback_reason?: Maybe<string>
  /** Registered services only: which one, and what was asked of it (path without query, as the service sees it). */
  readonly service_name?: Maybe<string>
  readonly http_method?: Maybe<string>
  readonly endpoint_path?: Maybe<string>
  /** The path of the service's OpenAPI document that `endpoint_path` is an instance of. */
  readonly endpoint_template?: Maybe<string>
  /** `none` also where no answer is read: direct mode and the wildcard. */
  readonly cost_mode?: Maybe<CostMode>
  readonly pricing_rule_name?: Maybe<string>
  /** What the policy saw, to explain the decision later. */
  readonly policy_version?: Maybe<number>
  readonly tools?: Maybe<boolean>
  readonly estimated_input_tokens?: Maybe<number>
  readonly denial?: Maybe<DenialRecord>
  readonly guardrail_action_count?: Maybe<number>
  /** Rows of `guardrail_execution_events`: they are as durable as the record, and written with it. */
  readonly guardrails?: Maybe<ReadonlyArray<Execution>>
  /** Rows of `upstream_objects`, written with it too. */
  readonly objects?: Maybe<ReadonlyArray<UpstreamObject>>
  /** Keyed fingerprints of the bodies, as the client sent and got them; only of bodies that were seen whole. */
  readonly request_hash?: Maybe<string>
  readonly response_hash?: Maybe<string>
}
