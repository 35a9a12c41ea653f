import { Schema } from "effect"
import { PolicyRoute, Provider } from "./model/CanonicalRoute.ts"

const Count = Schema.NullOr(Schema.Int)

/** Where the cost of a record comes from (reference §10.3; `price_table` is the operator's). */
export const CostSource = Schema.Literals(["upstream_passthrough", "price_table", "route_default", "none"])
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
  project_id: Schema.NullOr(Schema.String),
  route: PolicyRoute,
  model: Schema.NullOr(Schema.String),
  provider: Provider,
  status_code: Schema.Int,
  /** The gateway's code, when the gateway and not the upstream decided the outcome. */
  error_code: Schema.NullOr(Schema.String),
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
  task_id: Schema.NullOr(Schema.String),
  run_id: Schema.NullOr(Schema.String),
  trace_id: Schema.NullOr(Schema.String),
  fallback_count: Schema.Int
})
export type UsageRecord = typeof UsageRecord.Type

/** The queue holds what this process wrote: plain JSON, written on the hot path without a codec. */
export const encode = (record: UsageRecord): string => JSON.stringify(record)
export const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(UsageRecord))
