/** What a row of `usage_rollups` has to filter and to group by: its columns, with a comma between them. */
export const dimensions =
  "project_id, key_id, route, model, provider, service_name, http_method, endpoint, status_code, task_id, run_id, team_id"

/**
 * Of an event: what sums know its endpoint by. Clients choose the paths of a service, so where no template of its
 * document bounds how many there are, all of them count under the service's name.
 */
export const endpointOfEvent = "coalesce(endpoint_template, CASE WHEN endpoint_path IS NOT NULL THEN service_name END)"

/**
 * Of an event: what sums know its model by. Clients may invent names, so those that nobody knows, and that nothing
 * answered for, count together.
 */
export const modelOfEvent = "CASE WHEN model_known IS FALSE THEN 'other' ELSE model END"

/**
 * Of an event: the status that sums know it by. An answer that failed when its client had seen the head of it counts as
 * a 502, whatever that head said.
 */
export const statusOfEvent = "CASE WHEN status_code < 400 AND error_code IS NOT NULL THEN 502 ELSE status_code END"

/** SQL of an event: the flat price stands for it, because nobody knows what its model costs. */
export const unpricedEvent = "cost_source = 'route_default'"

/** What it adds up, by column. */
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

/** SQL of `usage_events`: limits on requests have counted the event. Checks before the limits refused all others. */
export const admittedEvent = `error_code IS NULL OR error_code LIKE 'upstream_%' OR error_code IN ('${refusedAfterAdmission.join("', '")}')`

/** The same of an event that is not in the table yet. `errorCode` is empty where there is none. */
export const isAdmitted = (errorCode: string): boolean =>
  errorCode === "" || errorCode.startsWith("upstream_") || refusedAfterAdmission.includes(errorCode)

/** Of a row of sums: how many such events. Rows of older versions do not know it; those that succeeded were admitted. */
export const admittedCount = "coalesce(admitted_count, CASE WHEN status_code < 400 THEN request_count ELSE 0 END)"

/** Sums of a month are read when Redis has lost a monthly budget's counter. */
export const minSumsDays = 62
