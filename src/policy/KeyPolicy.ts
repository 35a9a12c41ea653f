import { Schema, Struct } from "effect"
import * as AllowList from "./AllowList.ts"
import * as Limit from "./Limit.ts"
import * as ModelPattern from "./ModelPattern.ts"
import { BodyBytes, maxBodyBytes, PolicyRoute, Provider } from "./routes/CanonicalRoute.ts"
import { ServiceName } from "./routes/Service.ts"

const Hour = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 23 }))
const ModelName = Schema.String.check(Schema.isBetweenLength(1, 256))

/**
 * The treatment of a request whose model has no price, from lenient to strict. `flat` charges $0.01, `dearest` charges
 * the highest prices of the price list and at least $0.01, `refuse` refuses the request.
 */
const UnpricedModels = Schema.Literals(["flat", "dearest", "refuse"])
export type UnpricedModels = typeof UnpricedModels.Type

/** In JSON `null` means unrestricted. An empty policy restricts nothing. */
export const KeyPolicy = Schema.Struct({
  deny: Schema.Boolean,
  allowed_routes: AllowList.allowListOf(PolicyRoute),
  allowed_models: AllowList.allowListOf(ModelName),
  allowed_providers: AllowList.allowListOf(Provider),
  allowed_services: AllowList.allowListOf(ServiceName),
  allowed_hours_utc: AllowList.allowListOf(Hour),
  allow_streaming: Schema.Boolean,
  allow_tools: Schema.Boolean,
  rpm_limit: Limit.CountLimit,
  tpm_limit: Limit.CountLimit,
  max_requests_per_day: Limit.CountLimit,
  max_tokens_per_day: Limit.CountLimit,
  daily_budget_usd: Limit.DollarLimit,
  monthly_budget_usd: Limit.DollarLimit,
  max_cost_per_request: Limit.DollarLimit,
  unpriced_models: UnpricedModels,
  max_input_tokens_per_request: Limit.CountLimit,
  max_output_tokens_per_request: Limit.CountLimit,
  /** A key that nobody used for this many days is disabled at its next use. */
  unused_key_auto_disable_after_days: Limit.between(1, 3650),
  max_request_body_bytes: Schema.NullOr(BodyBytes),
  max_response_body_bytes: Schema.NullOr(BodyBytes),
  max_stream_duration_seconds: Limit.between(1, 604_800),
  max_sse_event_bytes: Limit.between(1, maxBodyBytes),
  max_tool_call_count: Limit.CountLimit,
  max_tool_schema_bytes: Limit.CountLimit,
  /** The maximum concurrent requests of the key in each gateway process. */
  max_concurrent_requests: Limit.CountLimit
}).annotate({ identifier: "KeyPolicy" })
export type KeyPolicy = typeof KeyPolicy.Type

export const KeyPolicyPatch = KeyPolicy.mapFields(Struct.map(Schema.optionalKey))
export type KeyPolicyPatch = typeof KeyPolicyPatch.Type

/** The policy fields that the API accepts. Refuses some model names that rows of older versions may contain. */
export const KeyPolicyInput = KeyPolicyPatch.pipe(
  Schema.fieldsAssign({
    allowed_models: Schema.optionalKey(AllowList.allowListOf(ModelName.check(ModelPattern.isModelPattern)))
  })
)

export const neutral: KeyPolicy = {
  deny: false,
  allowed_routes: AllowList.allowAll,
  allowed_models: AllowList.allowAll,
  allowed_providers: AllowList.allowAll,
  allowed_services: AllowList.allowAll,
  allowed_hours_utc: AllowList.allowAll,
  allow_streaming: true,
  allow_tools: true,
  rpm_limit: Limit.unlimited,
  tpm_limit: Limit.unlimited,
  max_requests_per_day: Limit.unlimited,
  max_tokens_per_day: Limit.unlimited,
  daily_budget_usd: Limit.unlimited,
  monthly_budget_usd: Limit.unlimited,
  max_cost_per_request: Limit.unlimited,
  unpriced_models: "flat",
  max_input_tokens_per_request: Limit.unlimited,
  max_output_tokens_per_request: Limit.unlimited,
  unused_key_auto_disable_after_days: Limit.unlimited,
  max_request_body_bytes: null,
  max_response_body_bytes: null,
  max_stream_duration_seconds: Limit.unlimited,
  max_sse_event_bytes: Limit.unlimited,
  max_tool_call_count: Limit.unlimited,
  max_tool_schema_bytes: Limit.unlimited,
  max_concurrent_requests: Limit.unlimited
}

const budgets = ["daily_budget_usd", "monthly_budget_usd"] as const

export const hasBudget = (policy: KeyPolicy): boolean => budgets.some((field) => policy[field]._tag === "Limited")

export const patched = (base: KeyPolicy, patch: KeyPolicyPatch): KeyPolicy => ({ ...base, ...patch })

/** Returns a policy that denies a request exactly if `a` or `b` denies it. */
export const intersection = (a: KeyPolicy, b: KeyPolicy): KeyPolicy => ({
  deny: a.deny || b.deny,
  allowed_routes: AllowList.intersection(a.allowed_routes, b.allowed_routes),
  allowed_models: ModelPattern.intersection(a.allowed_models, b.allowed_models),
  allowed_providers: AllowList.intersection(a.allowed_providers, b.allowed_providers),
  allowed_services: AllowList.intersection(a.allowed_services, b.allowed_services),
  allowed_hours_utc: AllowList.intersection(a.allowed_hours_utc, b.allowed_hours_utc),
  allow_streaming: a.allow_streaming && b.allow_streaming,
  allow_tools: a.allow_tools && b.allow_tools,
  rpm_limit: Limit.strictest(a.rpm_limit, b.rpm_limit),
  tpm_limit: Limit.strictest(a.tpm_limit, b.tpm_limit),
  max_requests_per_day: Limit.strictest(a.max_requests_per_day, b.max_requests_per_day),
  max_tokens_per_day: Limit.strictest(a.max_tokens_per_day, b.max_tokens_per_day),
  daily_budget_usd: Limit.strictest(a.daily_budget_usd, b.daily_budget_usd),
  monthly_budget_usd: Limit.strictest(a.monthly_budget_usd, b.monthly_budget_usd),
  max_cost_per_request: Limit.strictest(a.max_cost_per_request, b.max_cost_per_request),
  unpriced_models: stricterOfUnpriced(a.unpriced_models, b.unpriced_models),
  max_input_tokens_per_request: Limit.strictest(a.max_input_tokens_per_request, b.max_input_tokens_per_request),
  max_output_tokens_per_request: Limit.strictest(a.max_output_tokens_per_request, b.max_output_tokens_per_request),
  unused_key_auto_disable_after_days: Limit.strictest(
    a.unused_key_auto_disable_after_days,
    b.unused_key_auto_disable_after_days
  ),
  max_request_body_bytes: smallerOf(a.max_request_body_bytes, b.max_request_body_bytes),
  max_response_body_bytes: smallerOf(a.max_response_body_bytes, b.max_response_body_bytes),
  max_stream_duration_seconds: Limit.strictest(a.max_stream_duration_seconds, b.max_stream_duration_seconds),
  max_sse_event_bytes: Limit.strictest(a.max_sse_event_bytes, b.max_sse_event_bytes),
  max_tool_call_count: Limit.strictest(a.max_tool_call_count, b.max_tool_call_count),
  max_tool_schema_bytes: Limit.strictest(a.max_tool_schema_bytes, b.max_tool_schema_bytes),
  max_concurrent_requests: Limit.strictest(a.max_concurrent_requests, b.max_concurrent_requests)
})

const stricterOfUnpriced = (a: UnpricedModels, b: UnpricedModels): UnpricedModels => {
  const { literals } = UnpricedModels
  return literals.indexOf(a) > literals.indexOf(b) ? a : b
}

const smallerOf = (a: number | null, b: number | null): number | null =>
  a === null ? b : b === null ? a : Math.min(a, b)
