import { Context, Effect, Layer, Option, Schema, Stream, Struct } from "effect"
import { toDollars } from "../../policy/Price.ts"
import { Database } from "../../services/Database.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { Cursor } from "../api/schema/Fields.ts"
import { Operator } from "../api/schema/Security.ts"
import {
  type EventSort,
  type EventsQuery,
  type ExportQuery,
  UsageEvent,
  type UsageFilter
} from "../api/usage/UsageApi.ts"
import { BoundedQueries } from "../store/BoundedQueries.ts"
import { keyset, readPage } from "../store/Paging.ts"
import { Count, computedRows, type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"
import * as UsageSql from "./UsageSql.ts"
import { validateRange } from "./UsageTimeRanges.ts"

type UsageFailure = Refused<"invalid_usage_query"> | StoreFailure

interface EventsPage {
  readonly rows: ReadonlyArray<UsageEvent>
  readonly limit: number
  readonly offset: number
  readonly has_more: boolean
  readonly next_cursor: Cursor | null
}

/** Reads the usage records. The gateway writes one record for every authenticated request. */
export class UsageEvents extends Context.Service<
  UsageEvents,
  {
    readonly page: (query: EventsQuery) => Effect.Effect<EventsPage, UsageFailure, Operator>
    /**
     * Reads the oldest records first, in batches, at the speed of the client. The effect succeeds after the first
     * batch. A later failure of the database ends the stream as a defect, because the response has begun.
     */
    readonly batches: (
      query: ExportQuery
    ) => Effect.Effect<Stream.Stream<ReadonlyArray<UsageEvent>>, UsageFailure, Operator>
  }
>()("svc/control/UsageEvents") {
  static readonly layer = Layer.suspend(() => Layer.effect(UsageEvents, make))
}

const defaultLimit = 50
const defaultExport = 1000

/** The database reads and discards every row before an offset. Cursors need no such limit. */
const maxOffset = 10_000

/** Sorting by anything except time reads every matching record, so their number is limited. */
const maxSortedEvents = 100_000

const batchSize = 500

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const { runBounded } = yield* BoundedQueries
  const usageSql = UsageSql.make(sql)
  const columns = sql.literal(
    `id, created_at, request_id, key_id, project_id, team_id, route, model, provider, status, status_code, error_code, latency_ms,
     usage_source, input_tokens, output_tokens, total_tokens, cached_input_tokens, cache_write_tokens, reasoning_tokens,
     cost_nanos, cost_source, cost_mode, pricing_rule_name, streamed, service_name, http_method, endpoint_path,
     endpoint_template, task_id, run_id, trace_id, fallback_count, upstream_ms, first_byte_ms, gateway_ms, subject, end_user,
     session_id, client, denial->>'check' AS denied_by, denial->>'layer' AS denied_in_layer,
     coalesce(guardrail_action_count, 0) AS guardrail_action_count,
     CASE WHEN guardrail_action_count > 0 THEN (
       SELECT CASE WHEN count(*) > 0 THEN coalesce(sum(ran.latency_ms) FILTER (WHERE ran.mode = 'pre_call'), 0)::bigint END
       FROM guardrail_execution_events AS ran
       WHERE ran.created_at > usage_events.created_at AND ran.created_at < usage_events.created_at + interval '1 millisecond'
         AND ran.request_id = usage_events.request_id
     ) ELSE 0 END AS pre_call_ms,
     (SELECT name FROM api_keys WHERE api_keys.id = usage_events.key_id) AS key_name,
     (SELECT key_prefix FROM api_keys WHERE api_keys.id = usage_events.key_id) AS key_prefix,
     (SELECT name FROM projects WHERE projects.id = usage_events.project_id) AS project_name`
  )

  const pageByTime = Effect.fnUntraced(function* (query: EventsQuery, limit: number, offset: number) {
    const at = keyset(sql, "usage_events", query.cursor, query.sort_order === "asc" ? "oldest_first" : "newest_first")
    return yield* readPage(
      eventRows,
      sql`SELECT ${columns}, ${at.micros} FROM usage_events WHERE ${usageSql.matchingEvents(query)} AND ${at.afterCursor}
        ORDER BY ${at.order} LIMIT ${limit + 1} OFFSET ${offset}`.unprepared,
      limit,
      toUsageEvent
    )
  })

  const pageSorted = Effect.fnUntraced(function* (
    query: EventsQuery,
    by: Exclude<EventSort, "created_at">,
    limit: number,
    offset: number
  ) {
    const matched = sql`SELECT id, created_at, ${sql.literal(sortColumns[by])} AS weight FROM usage_events
      WHERE ${usageSql.matchingEvents(query)} LIMIT ${maxSortedEvents + 1}`
    const [size] = yield* countRow.all(sql`SELECT count(*) AS size FROM (${matched}) AS matched`.unprepared)
    if ((size?.size ?? 0) > maxSortedEvents) {
      return yield* new ControlError(
        "invalid_usage_query",
        `sort_by ${by} can order at most ${maxSortedEvents} events and more match; narrow the filter or the time range.`,
        { param: "sort_by" }
      )
    }
    const order = sql.literal(query.sort_order === "asc" ? "ASC" : "DESC")
    const { next, rows } = yield* readPage(
      eventRows,
      sql`SELECT ${columns}, 0::bigint AS micros
        FROM (${matched}) AS matched JOIN usage_events USING (created_at, id)
        ORDER BY weight ${order} NULLS LAST, created_at DESC, id DESC LIMIT ${limit + 1} OFFSET ${offset}`.unprepared,
      limit,
      toUsageEvent
    )
    return { rows, more: next !== undefined }
  })

  const readBatch = (query: UsageFilter, cursor: Cursor | undefined, size: number, offset: number) => {
    const at = keyset(sql, "usage_events", cursor, "oldest_first")
    return toStoreFailures(
      runBounded(() =>
        readPage(
          eventRows,
          sql`SELECT ${columns}, ${at.micros} FROM usage_events WHERE ${usageSql.matchingEvents(query)} AND ${at.afterCursor}
              ORDER BY ${at.order} LIMIT ${size + 1} OFFSET ${offset}`.unprepared,
          size,
          toUsageEvent
        )
      )
    )
  }

  return UsageEvents.of({
    page: Effect.fn("UsageEvents.page")(function* (query) {
      yield* validateRange(query)
      const { cursor, limit = defaultLimit, offset = 0, sort_by = "created_at" } = query
      if (sort_by === "created_at") {
        if (offset > maxOffset) return yield* offsetTooLarge
        const { next, rows } = yield* toStoreFailures(runBounded(() => pageByTime(query, limit, offset)))
        return { rows, limit, offset, has_more: next !== undefined, next_cursor: next ?? null }
      }
      if (cursor !== undefined) return yield* cursorNotAllowed
      const { more, rows } = yield* toStoreFailures(runBounded(() => pageSorted(query, sort_by, limit, offset)))
      return { rows, limit, offset, has_more: more, next_cursor: null }
    }),

    batches: Effect.fn("UsageEvents.batches")(function* (query) {
      yield* validateRange(query)
      const { all = "false", limit = defaultExport, offset = 0, ...filter } = query
      const remaining = all === "true" ? Number.POSITIVE_INFINITY : limit
      const first = yield* readBatch(filter, undefined, Math.min(batchSize, remaining), offset)
      const rest = Stream.paginate(
        { cursor: first.next, remaining: remaining - first.rows.length },
        Effect.fnUntraced(function* ({ cursor, remaining }) {
          if (cursor === undefined || remaining <= 0) return [[], Option.none()] as const
          const { next, rows } = yield* readBatch(filter, cursor, Math.min(batchSize, remaining), 0)
          return [[rows], Option.some({ cursor: next, remaining: remaining - rows.length })] as const
        })
      )
      const ofOperator = Stream.provideService(rest, Operator, yield* Operator)
      return Stream.concat(Stream.succeed(first.rows), Stream.orDie(ofOperator))
    })
  })
})

const offsetTooLarge = new ControlError(
  "invalid_usage_query",
  `offset must be at most ${maxOffset}; use next_cursor to read further.`,
  { param: "offset" }
)

const cursorNotAllowed = new ControlError(
  "invalid_usage_query",
  "cursor requires sort_by created_at; use offset with another sort_by.",
  { param: "cursor" }
)

const sortColumns: Readonly<Record<Exclude<EventSort, "created_at">, string>> = {
  cost: "cost_nanos",
  latency: "latency_ms",
  tokens: "total_tokens",
  status_code: "status_code"
}

const Tokens = Schema.NullOr(Count)

const EventRow = UsageEvent.mapFields(Struct.omit(["estimated_cost_usd", "cached_share"])).pipe(
  Schema.fieldsAssign({
    created_at: Schema.DateTimeUtcFromDate,
    latency_ms: Count,
    upstream_ms: Schema.NullOr(Count),
    input_tokens: Tokens,
    output_tokens: Tokens,
    total_tokens: Tokens,
    cached_input_tokens: Tokens,
    cache_write_tokens: Tokens,
    reasoning_tokens: Tokens,
    cost_nanos: Tokens,
    pre_call_ms: Schema.NullOr(Count)
  })
)

const eventRows = storedRows(EventRow, { table: "usage_events", key: ["id"] })
const countRow = computedRows(Schema.Struct({ size: Count }))

const toUsageEvent = ({ cost_nanos, ...event }: typeof EventRow.Type): UsageEvent => ({
  ...event,
  estimated_cost_usd: cost_nanos === null ? null : toDollars(cost_nanos),
  cached_share: shareOf(event.cached_input_tokens, event.input_tokens)
})

const shareOf = (part: number | null, whole: number | null): number | null =>
  part === null || whole === null || whole === 0 ? null : part / whole
