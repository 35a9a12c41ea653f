export const dimensions =
  "project_id, key_id, route, model, provider, service_name, http_method, endpoint, status_code, task_id, run_id, team_id, client, subject"

/** SQL: the endpoint of an event. A path without an OpenAPI template counts under the service's name. */
export const endpointOfEvent = "coalesce(endpoint_template, CASE WHEN endpoint_path IS NOT NULL THEN service_name END)"

/** The groups of requests that named no model, and of models whose names no upstream has answered. */
const withoutModel: ReadonlySet<string> = new Set(["unknown", "other"])

export const isWithoutModel = (name: string): boolean => withoutModel.has(name)

/** SQL: the model of an event. Unknown names count as `other`, because clients may invent names. */
export const modelOfEvent = "CASE WHEN model_known IS FALSE THEN 'other' ELSE model END"

/** SQL: a response that failed after its status was sent counts as 502. */
export const statusOfEvent = "CASE WHEN status_code < 400 AND error_code IS NOT NULL THEN 502 ELSE status_code END"

/** SQL: true if the event was charged the flat cost or the dearest price, because its model has no price. */
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

/** SQL: the sum of each summand over events. */
const sumsOfEvents: Readonly<Record<(typeof summands)[number], string>> = {
  request_count: "count(*)",
  reported_count: "count(*) FILTER (WHERE usage_source = 'reported')",
  estimated_count: "count(*) FILTER (WHERE usage_source = 'estimated')",
  guardrail_block_count: "count(*) FILTER (WHERE error_code = 'guardrail_blocked')",
  expensive_request_count: "count(*) FILTER (WHERE cost_nanos >= 1000000000)",
  unpriced_count: `count(*) FILTER (WHERE ${unpricedEvent})`,
  input_tokens: "coalesce(sum(input_tokens), 0)",
  output_tokens: "coalesce(sum(output_tokens), 0)",
  total_tokens: "coalesce(sum(total_tokens), 0)",
  cached_input_tokens: "coalesce(sum(cached_input_tokens), 0)",
  cache_write_tokens: "coalesce(sum(cache_write_tokens), 0)",
  reasoning_tokens: "coalesce(sum(reasoning_tokens), 0)",
  cost_nanos: "coalesce(sum(cost_nanos), 0)",
  total_latency_ms: "sum(latency_ms)",
  fallback_count: "sum(fallback_count)"
}

/** SQL: a SELECT list of the summands over events. */
export const summedEvents = summands.map((name) => `${sumsOfEvents[name]} AS ${name}`).join(", ")

/** SQL: the label of a group. NULL becomes a named group, so that the groups add up to the whole. */
export const labels = {
  project: "coalesce(project_id::text, 'individual')",
  key: "key_id::text",
  team: "coalesce(team_id, 'none')",
  service: "coalesce(service_name, 'none')",
  endpoint: "coalesce(http_method || ' ' || endpoint, 'none')",
  provider: "provider",
  model: "coalesce(model, 'unknown')",
  task: "coalesce(task_id, 'none')",
  client: "coalesce(client, 'unknown')",
  subject: "coalesce(subject, 'none')"
} as const
export type Dimension = keyof typeof labels

/**
 * SQL: the type of the task of a row that is joined with `task_index`. The index does not have the types of all tasks,
 * and requests have the ids alone.
 */
export const taskTypeOf = (taskId: string): string =>
  `CASE WHEN coalesce(${taskId}, 'none') = 'none' THEN 'none' ELSE coalesce(task_type, 'unknown') END`

/** The dimensions that are also summed by the minute, and the labels of events in them. */
export const minuteLabels = {
  all: "''",
  project: labels.project,
  key: labels.key,
  model: `coalesce(${modelOfEvent}, 'unknown')`
} as const
export type MinuteDimension = keyof typeof minuteLabels

/** Sums by the minute are kept this long. */
export const minuteSumsHours = 48

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
