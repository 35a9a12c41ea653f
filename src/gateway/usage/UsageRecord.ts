import { Option } from "effect"
import * as Headers from "../../http/Headers.ts"
import type { EffectivePolicy } from "../../policy/EffectivePolicy.ts"
import type { Facts } from "../../policy/facts/Facts.ts"
import type { Execution } from "../../policy/Guardrail.ts"
import type { PolicyRoute, Provider } from "../../policy/routes/CanonicalRoute.ts"
import type { CostMode } from "../../policy/routes/Service.ts"
import type { UpstreamObject } from "../../policy/routes/UpstreamObjects.ts"
import type { ServiceCall } from "../../policy/ServiceCall.ts"
import { closest } from "../../policy/ServicePricing.ts"
import type { GatewayError } from "../GatewayError.ts"
import type { Request } from "../request/Request.ts"
import type { Routed } from "../request/Target.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import type { Bill } from "./Billing.ts"
import type { Denied } from "./Denied.ts"

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
  readonly denial?: Maybe<Denied>
  readonly guardrail_action_count?: Maybe<number>
  /** Rows of `guardrail_execution_events`: they are as durable as the record, and written with it. */
  readonly guardrails?: Maybe<ReadonlyArray<Execution>>
  /** Rows of `upstream_objects`, written with it too. */
  readonly objects?: Maybe<ReadonlyArray<UpstreamObject>>
  /** Keyed fingerprints of the bodies, as the client sent and got them; only of bodies that were seen whole. */
  readonly request_hash?: Maybe<string>
  readonly response_hash?: Maybe<string>
}

/** What a request came to, for its record. */
export interface Account {
  readonly request: Request
  readonly target: Routed
  readonly key: KeyRecord
  readonly facts: Facts
  /** None for the wildcard, which policies do not know. */
  readonly policy: EffectivePolicy | undefined
  readonly denial: Denied | undefined
  readonly status: number
  readonly error: GatewayError | undefined
  readonly bill: Bill
  /** Who answered: not the target's provider after a fallback. */
  readonly provider: Provider
  readonly fallbackCount: number
  readonly fallbackReason?: string | undefined
  /** How long the upstream took, where it was asked. */
  readonly upstreamMs?: number | undefined
  /** What guardrails did to the request and its answer, if any ran. */
  readonly guardrails: ReadonlyArray<Execution> | undefined
  /** What the answer made known of objects at the upstream. */
  readonly objects?: ReadonlyArray<UpstreamObject> | undefined
  readonly requestHash?: string | undefined
  readonly responseHash?: string | undefined
  readonly endedAt: number
}

export const of = (account: Account): UsageRecord => {
  const { bill, error, facts, key, policy, request, target } = account
  const record: UsageRecord = {
    id: request.recordId,
    created_at: request.startedAt,
    request_id: request.requestId,
    key_id: key.id,
    project_id: Option.getOrUndefined(key.projectId),
    team_id: Option.getOrUndefined(key.teamId),
    route: target.route,
    model: recordable(facts.models[0]),
    provider: account.provider,
    status_code: account.status,
    error_code: error?.code,
    latency_ms: account.endedAt - request.startedAt,
    upstream_ms: account.upstreamMs,
    usage_source: bill.usageSource,
    input_tokens: bill.usage.input,
    output_tokens: bill.usage.output,
    total_tokens: bill.usage.total,
    cached_input_tokens: bill.usage.cachedInput,
    cache_write_tokens: bill.usage.cacheWrite,
    reasoning_tokens: bill.usage.reasoning,
    cost_nanos: bill.costNanos,
    cost_source: bill.costSource,
    cost_mode: bill.costMode ?? (target.config.mode === "direct_upstream_passthrough" ? "none" : undefined),
    pricing_rule_name: bill.pricingRule,
    streamed: facts.stream,
    task_id: request.taskId,
    run_id: request.runId,
    trace_id: Headers.traceId(request.traceparent),
    fallback_count: account.fallbackCount,
    fallback_reason: account.fallbackReason,
    policy_version: policy?.version,
    tools: facts.tools || undefined,
    estimated_input_tokens: facts.inputTokens || undefined,
    denial: account.denial,
    guardrail_action_count: account.guardrails?.length,
    guardrails: account.guardrails,
    objects: account.objects,
    request_hash: account.requestHash,
    response_hash: account.responseHash
  }
  return target.service === undefined ? record : { ...record, ...asked(target.service) }
}

const asked = ({ method, path, service }: ServiceCall): Partial<UsageRecord> => ({
  service_name: service.name,
  http_method: method,
  endpoint_path: path.slice(0, 1024),
  endpoint_template: closest(service.pricing.endpoints, method, path)?.path_template
})

/** A client's word, made fit for any store: well-formed, without control characters, of bounded length. */
const recordable = (name: string | undefined): string | undefined =>
  name
    ?.slice(0, 256)
    // behind the cut, which may halve a pair of surrogates
    .toWellFormed()
    .replace(/\p{Cc}/gu, "\ufffd")
