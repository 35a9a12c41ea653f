import type { SortOrder } from "../api/schema/Fields.ts"
import type { BreakdownSort } from "../api/usage/UsageApi.ts"

/** The number of groups that a breakdown has by default. */
export const defaultLimit = 20

/** SQL: the number that a row of sums adds to the weight of its group. */
const weightOf: Readonly<Record<BreakdownSort, string>> = {
  requests: "request_count",
  cost: "cost_nanos",
  failures: "CASE WHEN status_code >= 400 THEN request_count ELSE 0 END",
  success: "CASE WHEN status_code < 400 THEN request_count ELSE 0 END",
  latency: "total_latency_ms",
  tokens: "total_tokens",
  input_tokens: "input_tokens",
  output_tokens: "output_tokens",
  cached_input_tokens: "cached_input_tokens",
  reasoning_tokens: "reasoning_tokens",
  refusals: "CASE WHEN status_code IN (402, 403, 429) THEN request_count ELSE 0 END",
  guardrail_blocks: "guardrail_block_count",
  unpriced_requests: "unpriced_count",
  fallbacks: "fallback_count"
}

/**
 * SQL: the same as a number that PostgreSQL adds up quickly. Sums of `bigint` take it twice as long in 200,000 groups as
 * those of doubles, which are exact up to 2^53; a cost is of type `numeric`, which takes longer to convert than to add.
 */
export const addendOf = (by: BreakdownSort): string =>
  by === "cost" ? weightOf.cost : `(${weightOf[by]})::double precision`

/** SQL: sorting groups by this expression in ascending order yields the requested order. */
export const rankOf = (by: BreakdownSort, order: SortOrder): string => {
  const weight = `sum(${addendOf(by)})`
  const rank = by === "latency" ? `${weight} / sum(${addendOf("requests")})` : weight
  return order === "asc" ? rank : `-(${rank})`
}
