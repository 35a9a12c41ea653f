import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { TeamId } from "../keys/KeysApi.ts"
import { refusals } from "../schema/Errors.ts"
import { Cursor, Id, PageLimit, RangeTime, SortOrder, Timestamp } from "../schema/Fields.ts"
import { operation, requires, skipsUnreadable } from "../schema/Security.ts"

const Status = Schema.Literals(["success", "failure"])
const Tokens = Schema.NullOr(Schema.Int)
const OrNull = Schema.NullOr(Schema.String)

export const UsageEvent = Schema.Struct({
  id: Id,
  created_at: Timestamp,
  request_id: Schema.String,
  key_id: Id,
  /** The key's current name and the beginning of its secret. Both are `null` if the key no longer exists. */
  key_name: OrNull,
  key_prefix: OrNull,
  project_id: Schema.NullOr(Id),
  project_name: OrNull,
  /** The key's team when the request was made. */
  team_id: OrNull,
  route: Schema.String,
  model: OrNull,
  provider: Schema.String,
  status: Status,
  status_code: Schema.Int,
  error_code: OrNull,
  /** The check that refused the request, such as `rpm_limit`, and the policy layer that it belongs to. */
  denied_by: OrNull,
  denied_in_layer: OrNull,
  latency_ms: Schema.Int,
  /** From sending the request upstream to the end of the response. `null` if the gateway sent nothing. */
  upstream_ms: Schema.NullOr(Schema.Int),
  /** From the start of the request to the first byte of the upstream's response. */
  first_byte_ms: Schema.NullOr(Schema.Int),
  /** The gateway's own share of `latency_ms`. `null` if the gateway sent nothing upstream. */
  gateway_ms: Schema.NullOr(Schema.Int),
  usage_source: Schema.Literals(["reported", "estimated", "status_only"]),
  input_tokens: Tokens,
  output_tokens: Tokens,
  total_tokens: Tokens,
  cached_input_tokens: Tokens,
  cache_write_tokens: Tokens,
  reasoning_tokens: Tokens,
  /** The share of the input tokens that came from the provider's cache, between 0 and 1. */
  cached_share: Schema.NullOr(Schema.Finite),
  estimated_cost_usd: Schema.NullOr(Schema.Finite),
  cost_source: Schema.String,
  cost_mode: OrNull,
  pricing_rule_name: OrNull,
  streamed: Schema.Boolean,
  service_name: OrNull,
  http_method: OrNull,
  endpoint_path: OrNull,
  endpoint_template: OrNull,
  task_id: OrNull,
  run_id: OrNull,
  trace_id: OrNull,
  /** The subject of the verified identity that came with the key. */
  subject: OrNull,
  /** The client's own statements: `user` or `metadata.user_id` of the body, its session, and the class of its user agent. */
  end_user: OrNull,
  session_id: OrNull,
  client: OrNull,
  fallback_count: Schema.Int,
  guardrail_action_count: Schema.Int,
  /** The time that guardrails took before the request was sent. `null` if their executions are deleted. */
  pre_call_ms: Schema.NullOr(Schema.Int)
}).annotate({ identifier: "UsageEvent" })
export type UsageEvent = typeof UsageEvent.Type

/** Sums over the matching requests. Unknown token counts and costs count as zero. */
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
  /** The share of the input tokens that came from the provider's cache, between 0 and 1. */
  cached_share: Schema.NullOr(Schema.Finite),
  estimated_cost_usd: Schema.Finite,
  total_latency_ms: Schema.Int,
  average_latency_ms: Schema.NullOr(Schema.Finite),
  fallback_count: Schema.Int,
  fallback_rate: Schema.Finite,
  policy_denial_count: Schema.Int,
  rate_limit_denial_count: Schema.Int,
  budget_denial_count: Schema.Int,
  guardrail_block_count: Schema.Int,
  expensive_request_count: Schema.Int,
  /** The number of requests that were charged as `unpriced_models` says. Older summaries omit this field. */
  unpriced_request_count: Schema.Int
}).annotate({ identifier: "UsageSummary" })
export type UsageSummary = typeof UsageSummary.Type

/** `unpriced_models` contains up to twenty models without a price, the most used first. */
export const UsageTotal = UsageSummary.pipe(Schema.fieldsAssign({ unpriced_models: Schema.Array(Schema.String) }))
export type UsageTotal = typeof UsageTotal.Type

/** `name` is the value to filter by, such as the id of a key or project. `display_name` is a name for people. */
const Breakdown = Schema.Array(
  Schema.Struct({ name: Schema.String, display_name: Schema.String, summary: UsageSummary })
)
const Duration = Schema.NullOr(
  Schema.Struct({
    p50: Schema.optionalKey(Schema.Finite),
    p90: Schema.optionalKey(Schema.Finite),
    p95: Schema.optionalKey(Schema.Finite),
    p99: Schema.optionalKey(Schema.Finite)
  })
)

/** `name` is there with `split`, and `quantiles` with `quantiles`. */
export const TimeseriesBucket = Schema.Struct({
  bucket: Timestamp,
  name: Schema.optionalKey(Schema.String),
  display_name: Schema.optionalKey(Schema.String),
  summary: UsageSummary,
  /** In milliseconds, and within 2 % of the exact value. `null` if no request of the bucket has the measure. */
  quantiles: Schema.optionalKey(
    Schema.Struct({ latency_ms: Duration, first_byte_ms: Duration, gateway_ms: Duration, upstream_ms: Duration })
  )
})
export type TimeseriesBucket = typeof TimeseriesBucket.Type

const Series = Schema.Array(Schema.Struct({ bucket: Timestamp, summary: UsageSummary }))
const ServiceSeries = Schema.Array(Schema.Struct({ bucket: Timestamp, name: Schema.String, summary: UsageSummary }))
const SeriesPage = Schema.Struct({ limit: Schema.Int, offset: Schema.Int, has_more: Schema.Boolean })

export const UnusedKey = Schema.Struct({
  key_id: Id,
  name: OrNull,
  key_prefix: Schema.String,
  project_id: Schema.NullOr(Id),
  created_at: Timestamp,
  last_used_at: Schema.NullOr(Timestamp)
})
export type UnusedKey = typeof UnusedKey.Type

export const UsageDashboard = Schema.Struct({
  summary: UsageSummary,
  breakdowns: Schema.Struct({
    projects: Breakdown,
    keys: Breakdown,
    teams: Breakdown,
    services: Breakdown,
    endpoints: Breakdown,
    providers: Breakdown,
    models: Breakdown,
    tasks: Breakdown
  }),
  timeseries: Series,
  service_timeseries: ServiceSeries,
  timeseries_page: SeriesPage,
  service_timeseries_page: SeriesPage,
  unused_keys: Schema.Array(UnusedKey)
})
export type UsageDashboard = typeof UsageDashboard.Type

const Text = Schema.optionalKey(Schema.String.check(Schema.isBetweenLength(1, 256)))

const upTo = (maximum: number) => Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum })))
const Offset = Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 })))

const range = { from: Schema.optionalKey(RangeTime), to: Schema.optionalKey(RangeTime) }

/**
 * Every filter is an exact match. `from` is inclusive, and `to` is exclusive. `endpoint` is a path template. For
 * requests without a template, it is the name of the service. `min_cost_usd` and `min_latency_ms` are the minimum cost
 * and duration of a request. `denied_by` is the check that refused it.
 */
const filter = {
  ...range,
  key_id: Schema.optionalKey(Id),
  project_id: Schema.optionalKey(Id),
  team_id: Schema.optionalKey(TeamId),
  route: Text,
  model: Text,
  provider: Text,
  service: Text,
  method: Text,
  endpoint: Schema.optionalKey(Schema.String.check(Schema.isBetweenLength(1, 2048))),
  status: Schema.optionalKey(Status),
  status_code: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 100, maximum: 599 }))),
  task_id: Text,
  run_id: Text,
  trace_id: Text,
  subject: Text,
  end_user: Text,
  session_id: Text,
  client: Text,
  min_cost_usd: Schema.optionalKey(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 9_000_000 }))),
  min_latency_ms: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 86_400_000 }))),
  request_id: Text,
  error_code: Text,
  denied_by: Text
}
export const UsageFilter = Schema.Struct(filter)
export type UsageFilter = typeof UsageFilter.Type

export const BreakdownSort = Schema.Literals([
  "requests",
  "cost",
  "failures",
  "success",
  "latency",
  "tokens",
  "input_tokens",
  "output_tokens",
  "cached_input_tokens",
  "reasoning_tokens",
  "refusals",
  "guardrail_blocks",
  "unpriced_requests",
  "fallbacks"
])
export type BreakdownSort = typeof BreakdownSort.Type

export const EventSort = Schema.Literals(["created_at", "cost", "latency", "tokens", "status_code"])
export type EventSort = typeof EventSort.Type

const ordered = { sort_order: Schema.optionalKey(SortOrder) }

const BreakdownQuery = Schema.Struct({
  ...filter,
  ...ordered,
  breakdown_limit: upTo(500),
  breakdown_offset: Offset,
  sort_by: Schema.optionalKey(BreakdownSort)
})
export type BreakdownQuery = typeof BreakdownQuery.Type

const interval = { interval: Schema.optionalKey(Schema.Literals(["hour", "day"])) }

/** One response contains at most 1,000 buckets: over a month of hours, or two years of days. */
const SeriesQuery = Schema.Struct({ ...filter, ...interval, timeseries_limit: upTo(1000), timeseries_offset: Offset })
export type SeriesQuery = typeof SeriesQuery.Type

export const SeriesSplit = Schema.Literals([
  ...["model", "key", "project", "status", "code"],
  ...["team", "service", "endpoint", "provider", "client", "subject", "task_type"]
] as const)
export type SeriesSplit = typeof SeriesSplit.Type

const TimeseriesQuery = Schema.Struct({
  ...filter,
  interval: Schema.optionalKey(Schema.Literals(["minute", "hour", "day"])),
  split: Schema.optionalKey(SeriesSplit),
  split_limit: upTo(100),
  quantiles: Schema.optionalKey(
    Schema.String.check(
      Schema.isPattern(/^p(?:50|90|95|99)(?:,p(?:50|90|95|99)){0,3}$/, {
        expected: "some of p50, p90, p95 and p99, separated by commas"
      })
    )
  ),
  timeseries_limit: upTo(3000),
  timeseries_offset: Offset
})
export type TimeseriesQuery = typeof TimeseriesQuery.Type

const HistogramQuery = Schema.Struct({
  from: RangeTime,
  to: range.to,
  measure: Schema.Literals(["latency_ms", "first_byte_ms", "gateway_ms", "upstream_ms"])
})
export type HistogramQuery = typeof HistogramQuery.Type

export const HistogramBar = Schema.Struct({
  /** Differs by at most two per cent from the durations that are counted. Those below one millisecond are 0. */
  ms: Schema.Finite,
  request_count: Schema.Int
})
export type HistogramBar = typeof HistogramBar.Type

const DashboardQuery = Schema.Struct({
  ...BreakdownQuery.fields,
  ...SeriesQuery.fields,
  service_timeseries_limit: upTo(1000),
  service_timeseries_offset: Offset
})
export type DashboardQuery = typeof DashboardQuery.Type

const EventsQuery = Schema.Struct({
  ...filter,
  ...ordered,
  sort_by: Schema.optionalKey(EventSort),
  limit: Schema.optionalKey(PageLimit),
  offset: Offset,
  cursor: Schema.optionalKey(Cursor)
})
export type EventsQuery = typeof EventsQuery.Type

const UnusedQuery = Schema.Struct({ ...range, project_id: Schema.optionalKey(Id), limit: upTo(1000) })
export type UnusedQuery = typeof UnusedQuery.Type

/** Starts with the oldest request. With `all=true`, `limit` is ignored and all matching requests are streamed. */
const ExportQuery = Schema.Struct({
  ...filter,
  limit: upTo(10_000),
  offset: Offset,
  all: Schema.optionalKey(Schema.Literals(["true", "false"]))
})
export type ExportQuery = typeof ExportQuery.Type

const attachment = { "content-disposition": Schema.String }
const error = refusals("invalid_usage_query")
const breakdown = { query: BreakdownQuery, success: Breakdown, error }

const labelledOnly =
  "Requests without this label are left out. At most 100,000 requests may match; narrow the range or the filter if more do."

export const UsageApi = HttpApiGroup.make("usage")
  .annotate(OpenApi.Description, "Requests, tokens and cost.")
  .add(
    HttpApiEndpoint.get("summary", "/usage/summary", { query: filter, success: UsageTotal, error }).annotate(
      OpenApi.Summary,
      "Sum up usage"
    ),
    HttpApiEndpoint.get("dashboard", "/usage/dashboard", {
      query: DashboardQuery,
      success: UsageDashboard,
      error
    }).annotate(OpenApi.Summary, "Show sums, breakdowns, series and unused keys at once"),
    HttpApiEndpoint.get("timeseries", "/usage/timeseries", {
      query: TimeseriesQuery,
      success: Schema.Array(TimeseriesBucket),
      error
    })
      .annotate(OpenApi.Summary, "Sum up usage by minute, hour or day")
      .annotate(
        OpenApi.Description,
        "Minutes are kept for 48 hours, and their range is the last hour by default. With `split` each bucket has the groups with the most requests in the range, `split_limit` at most (10 by default). Minutes split otherwise than by model, key, project, status or code are read from the events, and have no quantiles. `quantiles` are those of the whole latency, of the time to the first byte, of the gateway's own share and of the upstream's."
      ),
    HttpApiEndpoint.get("histogram", "/usage/histogram", {
      query: HistogramQuery,
      success: Schema.Array(HistogramBar),
      error
    })
      .annotate(OpenApi.Summary, "Count requests by how long they took")
      .annotate(
        OpenApi.Description,
        "`measure` is the whole latency, the time to the first byte or the gateway's own share. A part of an hour or day at the beginning of the range is left out where it is older than the 48 hours for which minutes are kept."
      ),
    HttpApiEndpoint.get("byKey", "/usage/by-key", breakdown).annotate(OpenApi.Summary, "Break usage down by key"),
    HttpApiEndpoint.get("byProject", "/usage/by-project", breakdown).annotate(
      OpenApi.Summary,
      "Break usage down by project"
    ),
    HttpApiEndpoint.get("byTeam", "/usage/by-team", breakdown).annotate(OpenApi.Summary, "Break usage down by team"),
    HttpApiEndpoint.get("byModel", "/usage/by-model", breakdown).annotate(OpenApi.Summary, "Break usage down by model"),
    HttpApiEndpoint.get("byProvider", "/usage/by-provider", breakdown).annotate(
      OpenApi.Summary,
      "Break usage down by provider"
    ),
    HttpApiEndpoint.get("byService", "/usage/by-service", breakdown).annotate(
      OpenApi.Summary,
      "Break usage down by service"
    ),
    HttpApiEndpoint.get("byEndpoint", "/usage/by-endpoint", breakdown)
      .annotate(OpenApi.Summary, "Break usage down by the endpoint of services")
      .annotate(
        OpenApi.Description,
        "`name` is the method and the endpoint, such as `GET /items/{id}`, which are the filters `method` and `endpoint`. `none`: the request was for no service."
      ),
    HttpApiEndpoint.get("byTask", "/usage/by-task", breakdown).annotate(OpenApi.Summary, "Break usage down by task"),
    HttpApiEndpoint.get("byTaskType", "/usage/by-task-type", breakdown)
      .annotate(OpenApi.Summary, "Break usage down by the type of the task")
      .annotate(
        OpenApi.Description,
        "The index of tasks knows the types, where it is in PostgreSQL. The sums keep those of tasks that it has removed since. `unknown`: the index did not have the task when usage was summed up, nor a day later. `none`: the request has no task."
      ),
    HttpApiEndpoint.get("byClient", "/usage/by-client", breakdown).annotate(
      OpenApi.Summary,
      "Break usage down by client program"
    ),
    HttpApiEndpoint.get("bySubject", "/usage/by-subject", breakdown).annotate(
      OpenApi.Summary,
      "Break usage down by verified identity"
    ),
    HttpApiEndpoint.get("bySession", "/usage/by-session", breakdown)
      .annotate(OpenApi.Summary, "Break usage down by the clients' sessions")
      .annotate(OpenApi.Description, labelledOnly),
    HttpApiEndpoint.get("byEndUser", "/usage/by-end-user", breakdown)
      .annotate(OpenApi.Summary, "Break usage down by the end users that clients name")
      .annotate(OpenApi.Description, labelledOnly),
    HttpApiEndpoint.get("events", "/usage/events", {
      query: EventsQuery,
      success: Schema.Struct({
        rows: Schema.Array(UsageEvent),
        limit: Schema.Int,
        offset: Schema.Int,
        has_more: Schema.Boolean,
        /** Present if the list is sorted by time. Unlike an offset, a cursor stays fast on late pages. */
        next_cursor: Schema.NullOr(Cursor)
      }),
      error
    })
      .annotateMerge(skipsUnreadable)
      .annotate(OpenApi.Summary, "List requests")
      .annotate(
        OpenApi.Description,
        "If the list is sorted by time, the response contains `next_cursor` for the next page."
      ),
    HttpApiEndpoint.get("filterValues", "/usage/filter-values", {
      query: {
        // The name of a filter. It is decoded as text, so that an unknown name is refused with `invalid_usage_query`.
        field: Schema.String,
        q: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(256))),
        limit: upTo(100)
      },
      success: Schema.Struct({ field: Schema.String, values: Schema.Array(Schema.String) }),
      error
    }).annotate(OpenApi.Summary, "List the values that a filter can have"),
    HttpApiEndpoint.get("unusedKeys", "/usage/unused-keys", {
      query: UnusedQuery,
      success: Schema.Array(UnusedKey),
      error
    }).annotate(OpenApi.Summary, "List keys without a request in the range"),
    HttpApiEndpoint.get("ofTask", "/tasks/:task_id/usage", {
      params: { task_id: Schema.String.check(Schema.isBetweenLength(1, 256)) },
      query: filter,
      success: UsageTotal,
      error
    }).annotate(OpenApi.Summary, "Sum up the usage of a task")
  )
  .annotateEndpointsMerge(requires("usage:read"))
  .add(
    HttpApiEndpoint.get("exportJson", "/usage/export.json", {
      query: ExportQuery,
      success: HttpApiSchema.WithHeaders(
        HttpApiSchema.StreamUint8Array({ contentType: "application/json" }),
        attachment
      ),
      error
    })
      .annotateMerge(operation("Export requests as JSON, oldest first", "usage:export"))
      .annotate(OpenApi.Description, "With `all=true` all matching requests are exported as one stream."),
    HttpApiEndpoint.get("exportCsv", "/usage/export.csv", {
      query: ExportQuery,
      success: HttpApiSchema.WithHeaders(
        HttpApiSchema.StreamUint8Array({ contentType: "text/csv; charset=utf-8" }),
        attachment
      ),
      error
    })
      .annotateMerge(operation("Export requests as CSV, oldest first", "usage:export"))
      .annotate(OpenApi.Description, "With `all=true` all matching requests are exported as one stream."),
    HttpApiEndpoint.get("ofKey", "/keys/:id/usage", {
      params: { id: Id },
      query: filter,
      success: UsageTotal,
      error: [...error, ...refusals("not_found")]
    }).annotateMerge(operation("Sum up the usage of a key", "usage:read", "operators:manage")),
    HttpApiEndpoint.get("ofProject", "/projects/:id/usage", {
      params: { id: Id },
      query: filter,
      success: UsageTotal,
      error: [...error, ...refusals("missing_project")]
    }).annotateMerge(operation("Sum up the usage of a project", "usage:read", "operators:manage"))
  )

export const FilterField = Schema.Literals([
  "route",
  "provider",
  "service",
  "endpoint",
  "model",
  "task_id",
  "run_id",
  "client",
  "subject",
  "session_id",
  "end_user",
  "team_id",
  "project_id",
  "key_id"
])
export type FilterField = typeof FilterField.Type
