/** What a row of `usage_rollups` has to filter and to group by: its columns, with a comma between them. */
export const dimensions =
  "project_id, key_id, route, model, provider, service_name, http_method, endpoint, status_code, task_id, run_id"

/** What it adds up, by column. */
export const summands = [
  "request_count",
  "reported_count",
  "estimated_count",
  "guardrail_block_count",
  "expensive_request_count",
  "input_tokens",
  "output_tokens",
  "total_tokens",
  "cached_input_tokens",
  "cache_write_tokens",
  "reasoning_tokens",
  "cost_nanos",
  "total_latency_ms",
  "fallback_count"
] as const
