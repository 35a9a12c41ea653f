import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { refusals } from "./Errors.ts"
import { Cursor, Id, PageLimit, Timestamp } from "./Fields.ts"
import { requires } from "./Security.ts"

const Status = Schema.Literals(["success", "failure"])
const Tokens = Schema.NullOr(Schema.Int)

export const UsageEvent = Schema.Struct({
  id: Id,
  created_at: Timestamp,
  request_id: Schema.String,
  key_id: Id,
  project_id: Schema.NullOr(Id),
  route: Schema.String,
  model: Schema.NullOr(Schema.String),
  provider: Schema.String,
  status: Status,
  status_code: Schema.Int,
  error_code: Schema.NullOr(Schema.String),
  latency_ms: Schema.Int,
  usage_source: Schema.Literals(["reported", "estimated", "status_only"]),
  input_tokens: Tokens,
  output_tokens: Tokens,
  total_tokens: Tokens,
  cached_input_tokens: Tokens,
  cache_write_tokens: Tokens,
  reasoning_tokens: Tokens,
  estimated_cost_usd: Schema.NullOr(Schema.Finite),
  cost_source: Schema.String,
  streamed: Schema.Boolean,
  task_id: Schema.NullOr(Schema.String),
  run_id: Schema.NullOr(Schema.String),
  trace_id: Schema.NullOr(Schema.String),
  fallback_count: Schema.Int
})
export type UsageEvent = typeof UsageEvent.Type

/** Sums over what matched; tokens and cost that nobody knows count as nothing. */
export const UsageSummary = Schema.Struct({
  request_count: Schema.Int,
  success_count: Schema.Int,
  failure_count: Schema.Int,
  reported_count: Schema.Int,
  estimated_count: Schema.Int,
  status_only_count: Schema.Int,
  input_tokens: Schema.Int,
  output_tokens: Schema.Int,
  total_tokens: Schema.Int,
  cached_input_tokens: Schema.Int,
  cache_write_tokens: Schema.Int,
  reasoning_tokens: Schema.Int,
  estimated_cost_usd: Schema.Finite,
  total_latency_ms: Schema.Int,
  average_latency_ms: Schema.NullOr(Schema.Finite),
  fallback_count: Schema.Int,
  fallback_rate: Schema.Finite,
  policy_denial_count: Schema.Int,
  rate_limit_denial_count: Schema.Int,
  budget_denial_count: Schema.Int,
  guardrail_block_count: Schema.Int,
  expensive_request_count: Schema.Int
})
export type UsageSummary = typeof UsageSummary.Type

const Text = Schema.optionalKey(Schema.String.check(Schema.isBetweenLength(1, 256)))

/** Every filter is an exact match; `from` is inside the range, `to` outside. */
const filter = {
  from: Schema.optionalKey(Timestamp),
  to: Schema.optionalKey(Timestamp),
  key_id: Schema.optionalKey(Id),
  project_id: Schema.optionalKey(Id),
  route: Text,
  model: Text,
  provider: Text,
  status: Schema.optionalKey(Status),
  status_code: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 100, maximum: 599 }))),
  trace_id: Text
}
export const UsageFilter = Schema.Struct(filter)
export type UsageFilter = typeof UsageFilter.Type

export const UsageApi = HttpApiGroup.make("usage")
  .add(
    HttpApiEndpoint.get("events", "/events", {
      query: { ...filter, limit: Schema.optionalKey(PageLimit), cursor: Schema.optionalKey(Cursor) },
      success: Schema.Struct({ rows: Schema.Array(UsageEvent), next_cursor: Schema.NullOr(Cursor) }),
      error: refusals("invalid_usage_query")
    }),
    HttpApiEndpoint.get("summary", "/summary", {
      query: filter,
      success: UsageSummary,
      error: refusals("invalid_usage_query")
    })
  )
  .annotateEndpointsMerge(requires("usage:read"))
  .prefix("/usage")
