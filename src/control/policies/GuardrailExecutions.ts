import { Context, DateTime, Effect, Function, Layer, Schema } from "effect"
import type { Statement } from "effect/sql"
import { failureCodes } from "../../guardrails/GuardrailOutcome.ts"
import { Database } from "../../services/Database.ts"
import { ExecutionBucket, type ExecutionInterval } from "../api/policies/GuardrailBench.ts"
import { type ExecutionFilter, GuardrailExecution, GuardrailSum } from "../api/policies/GuardrailsApi.ts"
import type { Refused } from "../api/schema/Errors.ts"
import type { Cursor } from "../api/schema/Fields.ts"
import type { Operator } from "../api/schema/Security.ts"
import { BoundedQueries } from "../store/BoundedQueries.ts"
import { keyset, type Page, readPage } from "../store/Paging.ts"
import { Count, computedRows, type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"
import { validateRange } from "../usage/UsageTimeRanges.ts"

type InvalidQuery = Refused<"invalid_usage_query">

/** Reads the recorded guardrail runs. The gateway writes one row per run. */
export class GuardrailExecutions extends Context.Service<
  GuardrailExecutions,
  {
    readonly list: (
      query: ExecutionFilter & { readonly limit?: number; readonly offset?: number; readonly cursor?: Cursor }
    ) => Effect.Effect<Page<GuardrailExecution>, InvalidQuery | StoreFailure, Operator>
    readonly summary: (
      filter: ExecutionFilter
    ) => Effect.Effect<ReadonlyArray<GuardrailSum>, InvalidQuery | StoreFailure, Operator>
    /** Returns the latest buckets, oldest first. Times without executions have none. */
    readonly series: (
      filter: ExecutionFilter,
      interval: ExecutionInterval
    ) => Effect.Effect<ReadonlyArray<ExecutionBucket>, InvalidQuery | StoreFailure, Operator>
  }
>()("svc/control/GuardrailExecutions") {
  static readonly layer = Layer.suspend(() => Layer.effect(GuardrailExecutions, make))
}

const defaultLimit = 100

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const { runBounded } = yield* BoundedQueries

  const matching = ({ from, guardrail, to, ...exact }: ExecutionFilter): Statement.Fragment =>
    sql.and([
      ...(from === undefined ? [] : [sql`created_at >= ${DateTime.toDateUtc(from)}`]),
      ...(to === undefined ? [] : [sql`created_at < ${DateTime.toDateUtc(to)}`]),
      ...(guardrail === undefined ? [] : [sql`guardrail_name = ${guardrail}`]),
      ...Object.entries(exact).map(([column, value]) => sql`${sql(column)} = ${value}`)
    ])

  return GuardrailExecutions.of({
    list: Effect.fn("GuardrailExecutions.list")(function* ({ cursor, limit = defaultLimit, offset = 0, ...filter }) {
      yield* validateRange(filter)
      const at = keyset(sql, "guardrail_execution_events", cursor)
      return yield* runBounded(() =>
        readPage(
          executionRows,
          sql`
        SELECT id, created_at, request_id, key_id, project_id, route, model, provider, guardrail_name, mode, action,
          failure_policy, latency_ms, reason, metadata, ${at.micros}
        FROM guardrail_execution_events
        WHERE ${matching(filter)} AND ${at.afterCursor} ORDER BY ${at.order} LIMIT ${limit + 1} OFFSET ${offset}`,
          limit,
          Function.identity
        )
      )
    }, toStoreFailures),

    summary: Effect.fn("GuardrailExecutions.summary")(function* (filter) {
      yield* validateRange(filter)
      return yield* runBounded(() =>
        sumRows.all(sql`
        SELECT guardrail_name, mode, action, failure_policy, count(*) AS count,
          count(*) FILTER (WHERE ${sql.in("reason", failureCodes)}) AS failed_count,
          coalesce(sum(latency_ms), 0)::bigint AS total_latency_ms
        FROM guardrail_execution_events WHERE ${matching(filter)}
        GROUP BY guardrail_name, mode, action, failure_policy
        ORDER BY guardrail_name COLLATE "C", mode, action, failure_policy LIMIT ${maxSums}`)
      )
    }, toStoreFailures),

    series: Effect.fn("GuardrailExecutions.series")(function* (filter, interval) {
      yield* validateRange(filter)
      const latest = yield* runBounded(() =>
        bucketRows.all(sql`
        SELECT date_trunc(${interval}, created_at, 'UTC') AS bucket, action, count(*) AS count,
          coalesce(sum(latency_ms), 0)::bigint AS total_latency_ms, coalesce(max(latency_ms), 0) AS max_latency_ms
        FROM guardrail_execution_events WHERE ${matching(filter)}
        GROUP BY bucket, action ORDER BY bucket DESC, action LIMIT ${maxBuckets}`)
      )
      return latest.toReversed()
    }, toStoreFailures)
  })
})

/** Large enough for all guardrails of a full catalogue and for many deleted guardrails. */
const maxSums = 10_000

const maxBuckets = 10_000

const executionRows = storedRows(
  GuardrailExecution.pipe(Schema.fieldsAssign({ created_at: Schema.DateTimeUtcFromDate, latency_ms: Count })),
  { table: "guardrail_execution_events", key: ["id"] }
)
const sumRows = computedRows(
  GuardrailSum.pipe(Schema.fieldsAssign({ count: Count, failed_count: Count, total_latency_ms: Count }))
)
const bucketRows = computedRows(
  ExecutionBucket.pipe(
    Schema.fieldsAssign({
      bucket: Schema.DateTimeUtcFromDate,
      count: Count,
      total_latency_ms: Count,
      max_latency_ms: Count
    })
  )
)
