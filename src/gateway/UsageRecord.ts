import { Effect, Option, Schema } from "effect"
import type { Bill } from "./Billing.ts"
import type { GatewayError } from "./GatewayError.ts"
import * as Headers from "./Headers.ts"
import type { KeyRecord } from "./KeyRecord.ts"
import { Provider, UsageRoute } from "./model/CanonicalRoute.ts"
import type { EffectivePolicy } from "./model/EffectivePolicy.ts"
import type { Facts } from "./model/Facts.ts"
import { Execution } from "./model/Guardrail.ts"
import { CostMode } from "./model/Service.ts"
import type { ServiceCall } from "./model/ServiceCall.ts"
import { closest } from "./model/ServicePricing.ts"
import type { Request } from "./Request.ts"
import type { Routed } from "./Target.ts"

/** Absent where there is nothing to say. */
const orAbsent = <S extends Schema.Constraint>(schema: S) =>
  Schema.NullOr(schema).pipe(Schema.withDecodingDefault(Effect.succeed(null)))

const Count = orAbsent(Schema.Int)

/** Where the cost of a record comes from (reference §10.3; `price_table` is the operator's). */
export const CostSource = Schema.Literals([
  "upstream_passthrough",
  "price_table",
  "route_default",
  "service_default_fixed",
  "service_pricing_rule_fixed",
  "service_default_passthrough",
  "service_pricing_rule_passthrough",
  "missing_upstream_cost",
  "none"
])
export type CostSource = typeof CostSource.Type

/**
 * - `reported`: the upstream's own numbers.
 * - `estimated`: the upstream said nothing, or the answer was cut; the gateway's guess.
 * - `status_only`: tokens are not accounted here (direct mode, routes without tokens, refusals).
 */
export const UsageSource = Schema.Literals(["reported", "estimated", "status_only"])
export type UsageSource = typeof UsageSource.Type

/** One authenticated request: a row of `usage_events`, and what waits for the database in the usage queue. */
export const UsageRecord = Schema.Struct({
  /** The gateway's own, unique; writing a record twice is writing it once. */
  id: Schema.String,
  /** Epoch milliseconds. */
  created_at: Schema.Int,
  request_id: Schema.String,
  key_id: Schema.String,
  project_id: orAbsent(Schema.String),
  route: UsageRoute,
  model: orAbsent(Schema.String),
  provider: Provider,
  status_code: Schema.Int,
  /** The gateway's code, when the gateway and not the upstream decided the outcome. */
  error_code: orAbsent(Schema.String),
  latency_ms: Schema.Int,
  usage_source: UsageSource,
  input_tokens: Count,
  output_tokens: Count,
  total_tokens: Count,
  cached_input_tokens: Count,
  cache_write_tokens: Count,
  reasoning_tokens: Count,
  cost_nanos: Count,
  cost_source: CostSource,
  streamed: Schema.Boolean,
  task_id: orAbsent(Schema.String),
  run_id: orAbsent(Schema.String),
  trace_id: orAbsent(Schema.String),
  fallback_count: Schema.Int,
  /** Registered services only: which one, and what was asked of it (path without query, as the service sees it). */
  service_name: orAbsent(Schema.String),
  http_method: orAbsent(Schema.String),
  endpoint_path: orAbsent(Schema.String),
  /** The path of the service's OpenAPI document that `endpoint_path` is an instance of. */
  endpoint_template: orAbsent(Schema.String),
  /** `none` also where nothing is accounted: direct mode and the wildcard. */
  cost_mode: orAbsent(CostMode),
  pricing_rule_name: orAbsent(Schema.String),
  /** What the policy saw, to explain the decision later. */
  policy_version: Count,
  tools: orAbsent(Schema.Boolean),
  estimated_input_tokens: Count,
  /** The check that refused, and the layer of policy it came from. */
  denial: orAbsent(Schema.Struct({ check: Schema.String, layer: orAbsent(Schema.String) })),
  guardrail_action_count: Count,
  /** Rows of `guardrail_execution_events`: they are as durable as the record, and written with it. */
  guardrails: orAbsent(Schema.Array(Execution))
})
/** As it is written. */
export type UsageRecord = typeof UsageRecord.Encoded

/** The check that refused a request, and the layer of policy that it came from. */
export interface Denied {
  readonly check: string
  readonly layer?: string
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
  /** What guardrails did to the request and its answer, if any ran. */
  readonly guardrails: ReadonlyArray<Execution> | undefined
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
    route: target.route,
    model: recordable(facts.models[0]),
    provider: account.provider,
    status_code: account.status,
    error_code: error?.code,
    latency_ms: account.endedAt - request.startedAt,
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
    policy_version: policy?.version,
    tools: facts.tools || undefined,
    estimated_input_tokens: facts.inputTokens || undefined,
    denial: account.denial,
    guardrail_action_count: account.guardrails?.length,
    guardrails: account.guardrails
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
