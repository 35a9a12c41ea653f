import { Context, Effect, Layer, Schema } from "effect"
import { Database } from "../../services/Database.ts"
import * as UsageSums from "../../state/UsageSums.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { Operator } from "../api/schema/Security.ts"
import type {
  BreakdownQuery,
  DashboardQuery,
  UnusedKey,
  UnusedQuery,
  UsageDashboard,
  UsageFilter,
  UsageTotal
} from "../api/usage/UsageApi.ts"
import { BoundedQueries } from "../store/BoundedQueries.ts"
import { computedRows, type StoreFailure, toStoreFailures } from "../store/Rows.ts"
import * as UnusedKeyList from "./UnusedKeyList.ts"
import type { Dimension, FreeLabel } from "./UsageBreakdowns.ts"
import * as UsageBreakdowns from "./UsageBreakdowns.ts"
import * as UsageDashboards from "./UsageDashboards.ts"
import * as UsageGroups from "./UsageGroups.ts"
import * as UsageSql from "./UsageSql.ts"
import { validateRange } from "./UsageTimeRanges.ts"
import * as UsageValues from "./UsageValues.ts"
import { checkedField, type Values } from "./UsageValues.ts"

type UsageFailure = Refused<"invalid_usage_query"> | StoreFailure
type Breakdown = UsageDashboard["breakdowns"]["keys"]

/**
 * Sums up recorded requests. Whole hours and days come from precomputed sums (rollups). Single records are read for the
 * ends of the range, and for filters that the rollups do not support.
 */
export class Usage extends Context.Service<
  Usage,
  {
    readonly summary: (filter: UsageFilter) => Effect.Effect<UsageTotal, UsageFailure, Operator>
    readonly ofProject: (
      id: string,
      filter: UsageFilter
    ) => Effect.Effect<UsageTotal, UsageFailure | Refused<"missing_project">, Operator>
    readonly ofKey: (
      id: string,
      filter: UsageFilter
    ) => Effect.Effect<UsageTotal, UsageFailure | Refused<"not_found">, Operator>
    readonly breakdown: (by: Dimension, query: BreakdownQuery) => Effect.Effect<Breakdown, UsageFailure, Operator>
    /** By the types of the tasks, which the index of tasks in PostgreSQL knows. Others are of the type `unknown`. */
    readonly breakdownByTaskType: (query: BreakdownQuery) => Effect.Effect<Breakdown, UsageFailure, Operator>
    /** Reads the events. Requests without the label are left out. */
    readonly breakdownByLabel: (
      by: FreeLabel,
      query: BreakdownQuery
    ) => Effect.Effect<Breakdown, UsageFailure, Operator>
    /** By model, the requests that a policy refused because the model has no price. Reads the newest events. */
    readonly refusedForPrice: (query: BreakdownQuery) => Effect.Effect<Breakdown, UsageFailure, Operator>
    readonly dashboard: (query: DashboardQuery) => Effect.Effect<UsageDashboard, UsageFailure, Operator>
    /** Returns values of a field of the usage records that begin with `prefix`, in alphabetical order. */
    readonly values: (
      field: string,
      prefix: string,
      limit: number | undefined
    ) => Effect.Effect<Values, UsageFailure, Operator>
    /** Keys without a request in the range. The newest key comes first. */
    readonly unusedKeys: (query: UnusedQuery) => Effect.Effect<ReadonlyArray<UnusedKey>, UsageFailure, Operator>
  }
>()("svc/control/Usage") {
  static readonly layer = Layer.suspend(() => Layer.effect(Usage, make))
}

const maxShownModels = 20

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const { runBounded } = yield* BoundedQueries
  const usageSql = UsageSql.make(sql)
  const groups = UsageGroups.make(sql)
  const breakdowns = UsageBreakdowns.make(sql)
  const dashboards = UsageDashboards.make(sql)
  const values = UsageValues.make(sql)
  const unusedKeys = UnusedKeyList.make(sql)

  /** Runs `read` in one snapshot of the database. In this snapshot the rollups are complete up to `watermark`. */
  const analyze = <A, E>(range: Pick<UsageFilter, "from" | "to">, read: (watermark: number) => Effect.Effect<A, E>) =>
    Effect.andThen(validateRange(range), toStoreFailures(runBounded(({ until }) => read(until))))

  const total = (filter: UsageFilter, watermark: number) =>
    Effect.map(
      sumRow.only(
        sql`SELECT ${usageSql.sums} FROM (${usageSql.matchingSums(filter, watermark, "day", "overview")}) AS matching`
          .unprepared
      ),
      UsageSql.toSummary
    )

  const unpricedModels = (filter: UsageFilter, watermark: number) =>
    Effect.map(
      textRows.all(
        sql`SELECT ${sql.literal(UsageSums.labels.model)} AS value
          FROM (${usageSql.matchingSums(filter, watermark, "day", "keys")}) AS matching
          GROUP BY 1 HAVING sum(unpriced_count) > 0 ORDER BY sum(unpriced_count) DESC, 1 LIMIT ${maxShownModels}`
          .unprepared
      ),
      (read) => read.map(({ value }) => value)
    )

  const summary = Effect.fn("Usage.summary")((filter: UsageFilter) =>
    analyze(filter, (watermark) =>
      Effect.gen(function* () {
        const sums = yield* total(filter, watermark)
        const unpriced_models = sums.unpriced_request_count === 0 ? [] : yield* unpricedModels(filter, watermark)
        return { ...sums, unpriced_models }
      })
    )
  )

  const breakdown = Effect.fn("Usage.breakdown")((by: Dimension, query: BreakdownQuery) =>
    analyze(query, (watermark) =>
      Effect.flatMap(groups.divide(query, watermark, "day"), (range) => breakdowns.read(by, query, range))
    )
  )

  const exists = (table: string, id: string) =>
    Effect.map(toStoreFailures(sql`SELECT 1 FROM ${sql(table)} WHERE id = ${id}`), (found) => found.length > 0)

  return Usage.of({
    summary,

    ofProject: Effect.fn("Usage.ofProject")(function* (id, filter) {
      if (!(yield* exists("projects", id))) {
        return yield* new ControlError("missing_project", "There is no project with this id.")
      }
      return yield* summary({ ...filter, project_id: id })
    }),

    ofKey: Effect.fn("Usage.ofKey")(function* (id, filter) {
      if (!(yield* exists("api_keys", id))) {
        return yield* new ControlError("not_found", "There is no key with this id.")
      }
      return yield* summary({ ...filter, key_id: id })
    }),

    breakdown,

    breakdownByTaskType: Effect.fn("Usage.breakdownByTaskType")((query: BreakdownQuery) =>
      analyze(query, (watermark) =>
        Effect.flatMap(groups.divide(query, watermark, "day", "task_type"), (range) =>
          breakdowns.readByTaskType(query, range)
        )
      )
    ),

    breakdownByLabel: Effect.fn("Usage.breakdownByLabel")((by: FreeLabel, query: BreakdownQuery) =>
      analyze(query, () => breakdowns.readByLabel(by, query))
    ),

    refusedForPrice: Effect.fn("Usage.refusedForPrice")((query: BreakdownQuery) =>
      analyze(query, () => breakdowns.readDenied("price", query))
    ),

    /** The sums by task take as long as all others, so that both are read at once, each in a snapshot of its own. */
    dashboard: Effect.fn("Usage.dashboard")(function* (query: DashboardQuery) {
      const { from, project_id, to } = query
      const unusedQuery = { ...(from && { from }), ...(to && { to }), ...(project_id && { project_id }) }
      const [{ dashboard, unused_keys }, tasks] = yield* Effect.all(
        [
          analyze(query, (watermark) =>
            Effect.all({ dashboard: dashboards.read(query, watermark), unused_keys: unusedKeys.read(unusedQuery) })
          ),
          breakdown("tasks", query)
        ],
        { concurrency: 2 }
      )
      return { ...dashboard, breakdowns: { ...dashboard.breakdowns, tasks }, unused_keys }
    }),

    values: Effect.fn("Usage.values")((field: string, prefix: string, limit: number | undefined) =>
      Effect.flatMap(checkedField(field), (known) =>
        analyze({}, (watermark) => values.read(known, prefix, watermark, limit))
      )
    ),

    unusedKeys: Effect.fn("Usage.unusedKeys")((query: UnusedQuery) => analyze(query, () => unusedKeys.read(query)))
  })
})

const sumRow = computedRows(UsageSql.Sums)
const textRows = computedRows(Schema.Struct({ value: Schema.String }))
