export const dimensions =
  "project_id, key_id, route, model, provider, service_name, http_method, endpoint, status_code, task_id, run_id, team_id"

/** SQL: clients choose service paths, so paths without an OpenAPI template count under the service's name. */
export const endpointOfEvent = "coalesce(endpoint_template, CASE WHEN endpoint_path IS NOT NULL THEN service_name END)"

/** SQL: unknown model names count together as `other`, because clients may invent names. */
export const modelOfEvent = "CASE WHEN model_known IS FALSE THEN 'other' ELSE model END"

/** SQL: a response that failed after its head was sent counts as 502. */
export const statusOfEvent = "CASE WHEN status_code < 400 AND error_code IS NOT NULL THEN 502 ELSE status_code END"

/** SQL: the event was charged the flat cost of a model without a price. */
export const unpricedEvent = "cost_source = 'route_default'"

export const summands = [
  "request_count",
  "reported_count",
  "estimated_count",
  "guardrail_block_count",
  "expensive_request_count",
  "unpriced_count",
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

const refusedAfterAdmission = ["response_body_too_large", "guardrail_blocked"]

/** SQL over `usage_events`: request limits counted the event. All other events were refused before that. */
export const admittedEvent = `error_code IS NULL OR error_code LIKE 'upstream_%' OR error_code IN ('${refusedAfterAdmission.join("', '")}')`

/** `admittedEvent` for a record that is not in the table yet. `errorCode` is empty if there is none. */
export const isAdmitted = (errorCode: string): boolean =>
  errorCode === "" || errorCode.startsWith("upstream_") || refusedAfterAdmission.includes(errorCode)

/** SQL over a row of sums. Rows of older versions lack the count; their successful requests were admitted. */
export const admittedCount = "coalesce(admitted_count, CASE WHEN status_code < 400 THEN request_count ELSE 0 END)"

/** Restoring a monthly budget's counter reads the sums of a month. */
export const minSumsDays = 62
