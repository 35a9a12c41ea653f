import { Context, DateTime, Effect, Layer, Schema, Struct } from "effect"
import type { Statement } from "effect/sql"
import { toDollars } from "../gateway/model/Price.ts"
import { Database } from "../services/Database.ts"
import { ControlError, type Refused } from "./api/Errors.ts"
import type { Cursor } from "./api/Fields.ts"
import { UsageEvent, type UsageFilter, UsageSummary } from "./api/UsageApi.ts"
import { keyset, type Page, page, position } from "./Paging.ts"
import { Count, rows, type StoreFailure, settled } from "./Store.ts"

type Unusable = Refused<"invalid_usage_query">

/** What the gateway recorded, one row for each authenticated request. */
export class Usage extends Context.Service<
  Usage,
  {
    /** Newest first. */
    readonly events: (
      query: UsageFilter & { readonly limit?: number; readonly cursor?: Cursor }
    ) => Effect.Effect<Page<UsageEvent>, Unusable | StoreFailure>
    readonly summary: (filter: UsageFilter) => Effect.Effect<UsageSummary, Unusable | StoreFailure>
  }
>()("svc/control/Usage") {
  static readonly layer = Layer.suspend(() => Layer.effect(Usage, make))
}

const defaultLimit = 50

/** A request of a dollar and more stands out. */
const expensiveNanos = 1_000_000_000

const make = Effect.gen(function* () {
  const { sql } = yield* Database

  const columns = sql.literal(
    `id, created_at, request_id, key_id, project_id, route, model, provider, status, status_code, error_code, latency_ms,
     usage_source, input_tokens, output_tokens, total_tokens, cached_input_tokens, cache_write_tokens, reasoning_tokens,
     cost_nanos, cost_source, streamed, task_id, run_id, trace_id, fallback_count`
  )

  const matching = ({ from, to, ...exact }: UsageFilter): Statement.Fragment =>
    sql.and([
      ...(from === undefined ? [] : [sql`created_at >= ${DateTime.toDateUtc(from)}`]),
      ...(to === undefined ? [] : [sql`created_at < ${DateTime.toDateUtc(to)}`]),
      ...Object.entries(exact).map(([column, value]) => sql`${sql(column)} = ${value}`)
    ])

  return Usage.of({
    events: Effect.fn("Usage.events")(function* ({ cursor, limit = defaultLimit, ...filter }) {
      yield* ordered(filter)
      const at = keyset(sql, "usage_events", cursor)
      const read = yield* events.all(sql`
        SELECT ${columns}, ${at.micros} FROM usage_events
        WHERE ${matching(filter)} AND ${at.behind} ORDER BY ${at.order} LIMIT ${limit + 1}`)
      return page(read, limit, shown)
    }, settled),

    summary: Effect.fn("Usage.summary")(function* (filter) {
      yield* ordered(filter)
      const read = yield* sums.only(sql`
        SELECT
          count(*) AS request_count,
          count(*) FILTER (WHERE status = 'success') AS success_count,
          count(*) FILTER (WHERE status = 'failure') AS failure_count,
          count(*) FILTER (WHERE usage_source = 'reported') AS reported_count,
          count(*) FILTER (WHERE usage_source = 'estimated') AS estimated_count,
          count(*) FILTER (WHERE usage_source = 'status_only') AS status_only_count,
          count(*) FILTER (WHERE status_code = 403) AS policy_denial_count,
          count(*) FILTER (WHERE status_code = 429) AS rate_limit_denial_count,
          count(*) FILTER (WHERE status_code = 402) AS budget_denial_count,
          count(*) FILTER (WHERE error_code = 'guardrail_blocked') AS guardrail_block_count,
          count(*) FILTER (WHERE cost_nanos >= ${expensiveNanos}) AS expensive_request_count,
          coalesce(sum(input_tokens), 0)::bigint AS input_tokens,
          coalesce(sum(output_tokens), 0)::bigint AS output_tokens,
          coalesce(sum(total_tokens), 0)::bigint AS total_tokens,
          coalesce(sum(cached_input_tokens), 0)::bigint AS cached_input_tokens,
          coalesce(sum(cache_write_tokens), 0)::bigint AS cache_write_tokens,
          coalesce(sum(reasoning_tokens), 0)::bigint AS reasoning_tokens,
          coalesce(sum(cost_nanos), 0)::bigint AS cost_nanos,
          coalesce(sum(latency_ms), 0)::bigint AS total_latency_ms,
          coalesce(sum(fallback_count), 0)::bigint AS fallback_count
        FROM usage_events WHERE ${matching(filter)}`)
      return summed(read)
    }, settled)
  })
})

const Tokens = Schema.NullOr(Count)

const EventRow = UsageEvent.mapFields(Struct.omit(["estimated_cost_usd"])).pipe(
  Schema.fieldsAssign({
    ...position,
    created_at: Schema.DateTimeUtcFromDate,
    latency_ms: Count,
    input_tokens: Tokens,
    output_tokens: Tokens,
    total_tokens: Tokens,
    cached_input_tokens: Tokens,
    cache_write_tokens: Tokens,
    reasoning_tokens: Tokens,
    cost_nanos: Tokens
  })
)

/** Everything that the database sums; the rates and the dollars are made of it. */
const summedColumns = Struct.keys(
  Struct.omit(UsageSummary.fields, ["estimated_cost_usd", "average_latency_ms", "fallback_rate"])
)
const SummaryRow = Schema.Record(Schema.Literals([...summedColumns, "cost_nanos"]), Count)

const events = rows(EventRow)
const sums = rows(SummaryRow)

const shown = ({ cost_nanos, micros: _, ...event }: typeof EventRow.Type): UsageEvent => ({
  ...event,
  estimated_cost_usd: cost_nanos === null ? null : toDollars(cost_nanos)
})

const summed = ({ cost_nanos, ...counts }: typeof SummaryRow.Type): UsageSummary => {
  const requests = counts.request_count
  return {
    ...counts,
    estimated_cost_usd: toDollars(cost_nanos),
    average_latency_ms: requests === 0 ? null : counts.total_latency_ms / requests,
    fallback_rate: requests === 0 ? 0 : counts.fallback_count / requests
  }
}

const ordered = ({ from, to }: UsageFilter): Effect.Effect<void, Unusable> =>
  from === undefined || to === undefined || DateTime.isLessThan(from, to)
    ? Effect.void
    : Effect.fail(new ControlError("invalid_usage_query", "from must be earlier than to.", { param: "from" }))
