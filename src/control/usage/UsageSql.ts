import { DateTime, Schema, Struct } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Fragment } from "effect/sql/Statement"
import { toDollars, toNanos } from "../../policy/Price.ts"
import {
  dimensions,
  endpointOfEvent,
  modelOfEvent,
  statusOfEvent,
  summands,
  unpricedEvent
} from "../../state/UsageSums.ts"
import { UsageFilter, type UsageSummary } from "../api/usage/UsageApi.ts"
import { type RollupGrain, splitRange, type TimeRange } from "./UsageTimeRanges.ts"

/** Requests that cost one dollar or more are expensive. The writer of the rollups uses the same limit. */
const expensiveNanos = 1_000_000_000

const expensiveFrom = ({ min_cost_usd }: UsageFilter): number =>
  min_cost_usd === undefined ? expensiveNanos : toNanos(min_cost_usd)

export const make = (sql: SqlClient) => {
  const timeConditions = (column: Fragment, { end, start }: TimeRange): ReadonlyArray<Fragment> => [
    ...(Number.isFinite(start) ? [sql`${column} >= ${new Date(start)}`] : []),
    ...(Number.isFinite(end) ? [sql`${column} < ${new Date(end)}`] : [])
  ]

  /** Rollups and single records are filtered by the same conditions on different columns. */
  const sharedConditions = (
    filter: UsageFilter,
    { endpoint, model, status }: Record<"endpoint" | "model" | "status", Fragment>
  ): ReadonlyArray<Fragment> => {
    const equal = {
      project_id: filter.project_id,
      key_id: filter.key_id,
      team_id: filter.team_id,
      route: filter.route,
      provider: filter.provider,
      service_name: filter.service,
      http_method: filter.method?.toUpperCase(),
      task_id: filter.task_id,
      run_id: filter.run_id,
      client: filter.client,
      subject: filter.subject
    }
    return [
      ...Object.entries(equal).flatMap(([column, value]) =>
        value === undefined ? [] : [sql`${sql(column)} = ${value}`]
      ),
      ...(filter.model === undefined ? [] : [sql`${model} = ${filter.model}`]),
      ...(filter.endpoint === undefined ? [] : [sql`${endpoint} = ${filter.endpoint}`]),
      ...statusConditions(filter, status)
    ]
  }

  const statusConditions = (filter: UsageFilter, status: Fragment): ReadonlyArray<Fragment> => [
    ...(filter.status_code === undefined ? [] : [sql`${status} = ${filter.status_code}`]),
    ...(filter.status === undefined ? [] : [filter.status === "success" ? sql`${status} < 400` : sql`${status} >= 400`])
  ]

  const rollupColumns = {
    endpoint: sql.literal("endpoint"),
    model: sql.literal("model"),
    status: sql.literal("status_code")
  }
  const eventExpressions = {
    endpoint: sql.literal(endpointOfEvent),
    model: sql.literal(modelOfEvent),
    status: sql.literal(statusOfEvent)
  }

  const eventConditions = (filter: UsageFilter, span: TimeRange, columns = eventExpressions): Fragment =>
    sql.and([
      ...timeConditions(sql.literal("created_at"), span),
      ...sharedConditions(filter, columns),
      ...(filter.trace_id === undefined ? [] : [sql`trace_id = ${filter.trace_id}`]),
      ...(filter.session_id === undefined ? [] : [sql`session_id = ${filter.session_id}`]),
      ...(filter.end_user === undefined ? [] : [sql`end_user = ${filter.end_user}`]),
      ...(filter.request_id === undefined ? [] : [sql`request_id = ${filter.request_id}`]),
      ...(filter.error_code === undefined ? [] : [sql`error_code = ${filter.error_code}`]),
      ...(filter.denied_by === undefined ? [] : [sql`denial->>'check' = ${filter.denied_by}`]),
      ...(filter.min_latency_ms === undefined ? [] : [sql`latency_ms >= ${filter.min_latency_ms}`]),
      ...(filter.min_cost_usd === undefined ? [] : [sql`cost_nanos >= ${toNanos(filter.min_cost_usd)}`])
    ])

  const eventColumns = (expensive: number) => sql`
    created_at AS at, project_id, key_id, route, ${eventExpressions.model} AS model, provider, service_name, http_method,
    ${eventExpressions.endpoint} AS endpoint, ${eventExpressions.status} AS status_code, task_id, run_id, team_id,
    client, subject, 1::bigint AS request_count,
    (usage_source = 'reported')::integer::bigint AS reported_count,
    (usage_source = 'estimated')::integer::bigint AS estimated_count,
    (error_code IS NOT DISTINCT FROM 'guardrail_blocked')::integer::bigint AS guardrail_block_count,
    coalesce(cost_nanos >= ${expensive}, false)::integer::bigint AS expensive_request_count,
    (${sql.literal(unpricedEvent)})::integer::bigint AS unpriced_count,
    coalesce(input_tokens, 0) AS input_tokens,
    coalesce(output_tokens, 0) AS output_tokens,
    coalesce(total_tokens, 0) AS total_tokens,
    coalesce(cached_input_tokens, 0) AS cached_input_tokens,
    coalesce(cache_write_tokens, 0) AS cache_write_tokens,
    coalesce(reasoning_tokens, 0) AS reasoning_tokens,
    coalesce(cost_nanos, 0)::numeric AS cost_nanos,
    latency_ms AS total_latency_ms,
    fallback_count::bigint AS fallback_count`

  const rollupRows = (filter: UsageFilter, detail: RollupDetail, grain: string, condition: Fragment): Fragment => sql`
    SELECT ${bucketColumns} FROM usage_rollups
    WHERE grain = ${grain} AND part IN ${sql.literal(partsFor(filter, detail))}
      AND ${sql.and([condition, ...sharedConditions(filter, rollupColumns)])}`

  /** Without a span, the list contains a statement without rows, so that a union of it is never empty. */
  const singleEvents = (filter: UsageFilter, spans: ReadonlyArray<TimeRange>): ReadonlyArray<Fragment> =>
    (spans.length === 0 ? [{ start: 0, end: 0 }] : spans).map(
      (span) =>
        sql`SELECT ${eventColumns(expensiveFrom(filter))} FROM usage_events WHERE ${eventConditions(filter, span)}`
    )

  const bucketColumns = sql.literal(`bucket AS at, ${dimensions}, ${summands.join(", ")}`)

  return {
    /** Returns conditions for lists of records. They compare `model` with the model name that the client sent. */
    matchingEvents: (filter: UsageFilter): Fragment =>
      eventConditions(filter, rangeOf(filter), { ...eventExpressions, model: rollupColumns.model }),

    /** Returns one row for each event that names a session, an end user, or a model as the client sent it. */
    matchingLabels: (filter: UsageFilter, label: "session_id" | "end_user" | "model"): Fragment => sql`
      SELECT ${eventColumns(expensiveFrom(filter))}, 
      ${sql.literal(`'${label}'`)} AS dimension, ${sql.literal(label)} AS name FROM usage_events
      WHERE ${sql.literal(label)} IS NOT NULL AND ${eventConditions(filter, rangeOf(filter))}`,

    timeConditions,
    statusConditions,
    eventConditions,
    singleEvents,
    rollupRows,

    /** Reads rollups for whole hours and days, and single records for the rest. */
    matchingSums: (filter: UsageFilter, watermark: number, widest: RollupGrain, detail: RollupDetail): Fragment => {
      const { days, events, hours } = splitRange(rangeOf(filter), watermark, needsEvents(filter) ? "event" : widest)
      const buckets = (grain: string, spans: ReadonlyArray<TimeRange>) =>
        spans.map((span) => rollupRows(filter, detail, grain, sql.and(timeConditions(sql.literal("bucket"), span))))
      return sql.join(
        " UNION ALL ",
        false
      )([...buckets("day", days), ...buckets("hour", hours), ...singleEvents(filter, events)])
    },

    /** Aggregates single records by the bucket of a series and the columns that the dashboard shows. */
    bucketed: (events: ReadonlyArray<Fragment>, interval: "hour" | "day"): Fragment => sql`
      SELECT date_trunc(${interval}, at, 'UTC') AS at, ${sql.literal(onlyShownDimensions)},
        ${sql.literal(storedSums)}
      FROM (${sql.join(" UNION ALL ", false)(events)}) AS matching GROUP BY 1, ${sql.literal(shownDimensions)}`,

    /** Aggregates `rows` over time. Each combination of the columns that the dashboard shows becomes one row. */
    merged: (rows: Fragment): Fragment => sql`
      SELECT NULL::timestamptz AS at, ${sql.literal(shownDimensions)},
        ${sql.literal(storedSums)}
      FROM (${rows}) AS matching GROUP BY ${sql.literal(shownDimensions)}`,

    /** Sums for a SELECT list over `matchingSums` or `merged`. `Sums` decodes them. */
    sums: sql.literal(
      Object.entries(sumExpressions)
        .map(
          ([name, sum]) => `least(coalesce(${sum}, 0), ${Number.MAX_SAFE_INTEGER})::bigint::double precision AS ${name}`
        )
        .join(", ")
    ),
    sumNames: sql.literal(Object.keys(sumExpressions).join(", ")),
    /** Sums of the summands, under their names. */
    storedSums: sql.literal(storedSums)
  }
}

/**
 * SQL: sums of the summands, with the types that stored sums have. A union with others would turn all numbers of both
 * into `numeric`, which takes PostgreSQL three times as long.
 */
const storedSums = summands
  .map((name) => `sum(${name})::${name === "cost_nanos" ? "numeric" : "bigint"} AS ${name}`)
  .join(", ")

const shownDimensions = "project_id, key_id, team_id, model, provider, service_name, http_method, endpoint, status_code"

/** All dimensions, so that the rows have the columns of `UsageSql.matchingSums`. */
const onlyShownDimensions = dimensions
  .split(", ")
  .map((name) => (shownDimensions.split(", ").includes(name) ? name : `NULL::text AS ${name}`))
  .join(", ")

export const filterNames = Struct.keys(UsageFilter.fields)

/** The columns by which a query groups. They decide which parts of the table `usage_rollups` the query reads. */
export type RollupDetail = "overview" | "keys" | "tasks"

const partsFor = (filter: UsageFilter, detail: RollupDetail): string => {
  if (detail === "tasks" || filter.task_id !== undefined || filter.run_id !== undefined) return "('untasked', 'task')"
  const beyondOverview = [
    filter.project_id,
    filter.key_id,
    filter.team_id,
    filter.model,
    filter.method,
    filter.endpoint,
    filter.client,
    filter.subject
  ]
  return detail === "keys" || beyondOverview.some((value) => value !== undefined)
    ? "('untasked', 'tasked')"
    : "('overview')"
}

/** The rollups contain neither what single requests cost and took, nor labels that clients may choose freely. */
export const eventFilters = [
  "trace_id",
  "session_id",
  "end_user",
  "min_cost_usd",
  "min_latency_ms",
  "request_id",
  "error_code",
  "denied_by"
] as const satisfies ReadonlyArray<keyof UsageFilter>

export const needsEvents = (filter: UsageFilter): boolean => eventFilters.some((name) => filter[name] !== undefined)

export const rangeOf = ({ from, to }: UsageFilter): TimeRange => ({
  start: from === undefined ? Number.NEGATIVE_INFINITY : DateTime.toEpochMillis(from),
  end: to === undefined ? Number.POSITIVE_INFINITY : DateTime.toEpochMillis(to)
})

/**
 * SQL: sums of doubles, which take PostgreSQL half the time of exact ones. They are exact up to 2^53, where `sums` ends
 * them. Costs are of type `numeric`, which takes longer to convert than to add.
 */
const sumOf = (column: string) => `sum((${column})::double precision)`

const requestsOf = (condition: string) => `${sumOf("request_count")} FILTER (WHERE ${condition})`

const sumExpressions = {
  request_count: sumOf("request_count"),
  success_count: requestsOf("status_code < 400"),
  failure_count: requestsOf("status_code >= 400"),
  reported_count: sumOf("reported_count"),
  estimated_count: sumOf("estimated_count"),
  status_only_count: sumOf("request_count - reported_count - estimated_count"),
  policy_denial_count: requestsOf("status_code = 403"),
  rate_limit_denial_count: requestsOf("status_code = 429"),
  budget_denial_count: requestsOf("status_code = 402"),
  guardrail_block_count: sumOf("guardrail_block_count"),
  expensive_request_count: sumOf("expensive_request_count"),
  unpriced_request_count: sumOf("unpriced_count"),
  input_tokens: sumOf("input_tokens"),
  output_tokens: sumOf("output_tokens"),
  total_tokens: sumOf("total_tokens"),
  cached_input_tokens: sumOf("cached_input_tokens"),
  cache_write_tokens: sumOf("cache_write_tokens"),
  reasoning_tokens: sumOf("reasoning_tokens"),
  cost_nanos: "sum(cost_nanos)",
  total_latency_ms: sumOf("total_latency_ms"),
  fallback_count: sumOf("fallback_count")
} satisfies Record<keyof Sums, string>

export const Sums = Schema.Struct({
  request_count: Schema.Int,
  success_count: Schema.Int,
  failure_count: Schema.Int,
  reported_count: Schema.Int,
  estimated_count: Schema.Int,
  status_only_count: Schema.Int,
  policy_denial_count: Schema.Int,
  rate_limit_denial_count: Schema.Int,
  budget_denial_count: Schema.Int,
  guardrail_block_count: Schema.Int,
  expensive_request_count: Schema.Int,
  unpriced_request_count: Schema.Int,
  input_tokens: Schema.Int,
  output_tokens: Schema.Int,
  total_tokens: Schema.Int,
  cached_input_tokens: Schema.Int,
  cache_write_tokens: Schema.Int,
  reasoning_tokens: Schema.Int,
  cost_nanos: Schema.Int,
  total_latency_ms: Schema.Int,
  fallback_count: Schema.Int
})
export type Sums = typeof Sums.Type

/** Names each field, because a dashboard has 1,500 summaries, and copying the fields by their names took 20 ms. */
export const toSummary = (sums: Sums): UsageSummary => ({
  request_count: sums.request_count,
  success_count: sums.success_count,
  failure_count: sums.failure_count,
  reported_count: sums.reported_count,
  estimated_count: sums.estimated_count,
  status_only_count: sums.status_only_count,
  input_tokens: sums.input_tokens,
  output_tokens: sums.output_tokens,
  total_tokens: sums.total_tokens,
  cached_input_tokens: sums.cached_input_tokens,
  cache_write_tokens: sums.cache_write_tokens,
  reasoning_tokens: sums.reasoning_tokens,
  cached_share: ratio(sums.cached_input_tokens, sums.input_tokens),
  estimated_cost_usd: toDollars(sums.cost_nanos),
  total_latency_ms: sums.total_latency_ms,
  average_latency_ms: ratio(sums.total_latency_ms, sums.request_count),
  fallback_count: sums.fallback_count,
  fallback_rate: ratio(sums.fallback_count, sums.request_count) ?? 0,
  policy_denial_count: sums.policy_denial_count,
  rate_limit_denial_count: sums.rate_limit_denial_count,
  budget_denial_count: sums.budget_denial_count,
  guardrail_block_count: sums.guardrail_block_count,
  expensive_request_count: sums.expensive_request_count,
  unpriced_request_count: sums.unpriced_request_count
})

const ratio = (part: number, whole: number): number | null => (whole === 0 ? null : part / whole)
