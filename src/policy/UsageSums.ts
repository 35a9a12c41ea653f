export const dimensions =
  "project_id, key_id, route, model, provider, service_name, http_method, endpoint, status_code, task_id, run_id, team_id, client, subject"

/** SQL: the endpoint of an event. A path without an OpenAPI template counts under the service's name. */
export const endpointOfEvent = "coalesce(endpoint_template, CASE WHEN endpoint_path IS NOT NULL THEN service_name END)"

/** SQL: the model of an event. Unknown names count as `other`, because clients may invent names. */
export const modelOfEvent = "CASE WHEN model_known IS FALSE THEN 'other' ELSE model END"

/** SQL: a response that failed after its status was sent counts as 502. */
export const statusOfEvent = "CASE WHEN status_code < 400 AND error_code IS NOT NULL THEN 502 ELSE status_code END"

/** SQL: true if the event was charged the flat cost, because its model has no price. */
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

/** SQL: true for an event that counts towards request limits. All other events were refused before admission. */
export const admittedEvent = `error_code IS NULL OR error_code LIKE 'upstream_%' OR error_code IN ('${refusedAfterAdmission.join("', '")}')`

/** Decides like `admittedEvent` for a record that is not stored yet. `errorCode` is empty without an error. */
export const isAdmitted = (errorCode: string): boolean =>
  errorCode === "" || errorCode.startsWith("upstream_") || refusedAfterAdmission.includes(errorCode)

/** SQL: the requests that count towards limits. Sums of older versions lack this number and count successes. */
export const admittedCount = "coalesce(admitted_count, CASE WHEN status_code < 400 THEN request_count ELSE 0 END)"

/** Usage sums must be kept this long, because a lost monthly budget counter is restored from them. */
export const minSumsDays = 62
