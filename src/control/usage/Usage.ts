import { Context, DateTime, Effect, Layer, Schema } from "effect"
import type { Fragment } from "effect/sql/Statement"
import * as UsageSums from "../../policy/UsageSums.ts"
import { Database } from "../../services/Database.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { SortOrder } from "../api/schema/Fields.ts"
import type { Operator } from "../api/schema/Security.ts"
import {
  type BreakdownQuery,
  type BreakdownSort,
  type DashboardQuery,
  FilterField,
  type SeriesQuery,
  UnusedKey,
  type UnusedQuery,
  type UsageDashboard,
  type UsageFilter,
  type UsageTotal
} from "../api/usage/UsageApi.ts"
import { BoundedQueries } from "../store/BoundedQueries.ts"
import { Count, computedRows, type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"
import * as UsageGroups from "./UsageGroups.ts"
import * as UsageSql from "./UsageSql.ts"

type UsageFailure = Refused<"invalid_usage_query"> | StoreFailure
type Breakdown = UsageDashboard["breakdowns"]["keys"]

type Dimension = keyof typeof dimensionOf

/** Clients may choose these labels freely, so there are no sums for them. */
type FreeLabel = keyof typeof freeLabels

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
    /** Reads the events. Requests without the label are left out. */
    readonly breakdownByLabel: (
      by: FreeLabel,
      query: BreakdownQuery
    ) => Effect.Effect<Breakdown, UsageFailure, Operator>
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

interface Values {
  readonly field: string
  readonly values: ReadonlyArray<string>
}

const maxShownModels = 20

/** Reading so many events takes a fraction of a second. */
const maxLabelled = 100_000

const defaultLimits = { breakdown: 20, series: 744, values: 50, unused: 100 }

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const { runBounded } = yield* BoundedQueries
  const usageSql = UsageSql.make(sql)
  const groups = UsageGroups.make(sql)

  /** Runs `read` in one snapshot of the database. In this snapshot the rollups are complete up to `watermark`. */
  const analyze = <A, E>(range: Range, read: (watermark: number) => Effect.Effect<A, E>) =>
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

  /** Reads one bucket more than the limit, to find out whether there is a next page. */
  const series = Effect.fnUntraced(function* (query: SeriesQuery, watermark: number, page: Page, ofServices: boolean) {
    const { interval = "hour" } = query
    const dimension = ofServices ? "service" : "all"
    const matching = groups.rows(query, yield* groups.divide(query, watermark, interval), dimension, "overview")
    return yield* bucketRows.all(
      sql`SELECT date_trunc(${interval}, at, 'UTC') AS bucket, name, ${usageSql.sums} FROM (${matching}) AS matching
        ${ofServices ? sql`WHERE name <> 'none'` : sql``}
        GROUP BY 1, 2 ORDER BY 1, 2 LIMIT ${page.limit + 1} OFFSET ${page.offset}`.unprepared
    )
  })

  /** `matching` has the columns name, status_code and the summands. */
  const breakdownStatement = (by: Dimension | FreeLabel, matching: Fragment, query: BreakdownQuery) => {
    const { breakdown_limit = defaultLimits.breakdown, breakdown_offset = 0 } = query
    const order = orderExpression(query.sort_by ?? "requests", query.sort_order ?? "desc")
    // There may be 200,000 tasks. One aggregate selects the page. Other sums are computed only for rows of the page.
    return sql`
      WITH matching AS NOT MATERIALIZED (${matching}),
      page AS (SELECT name, ${sql.literal(order)} AS place FROM matching
        GROUP BY 1 ORDER BY 2, 1 LIMIT ${breakdown_limit} OFFSET ${breakdown_offset})
      SELECT ${by} AS dimension, summed.*, ${sql.literal(displayNames[by] ?? "summed.name")} AS display_name
      FROM (SELECT name, ${usageSql.sums}, place FROM matching JOIN page USING (name) GROUP BY name, place) AS summed
      ORDER BY place, summed.name`
  }

  /**
   * There may be 200,000 tasks. Those of whole days are counted in the order of an index, and joined with the few others.
   * Only the tasks of the page are then summed up.
   */
  const taskBreakdown = Effect.fnUntraced(function* (query: BreakdownQuery, range: UsageGroups.SummedRange) {
    const matching = groups.rows(query, range, "task", "tasks")
    if (range.narrow.day.length === 0) {
      return (yield* groupRows.all(breakdownStatement("tasks", matching, query).unprepared)).map(toGroup)
    }
    const { breakdown_limit = defaultLimits.breakdown, breakdown_offset = 0, sort_by = "requests" } = query
    const { days, others } = groups.byDays(query, range, "task", "tasks")
    const weights = (rows: Fragment) => sql`SELECT name, ${sql.literal(weightExpressions[sort_by])} AS weight,
      ${sql.literal(sortExpressions.requests)} AS requests FROM (${rows}) AS matching GROUP BY name`
    const weight = "coalesce(days.weight, 0) + coalesce(others.weight, 0)"
    const requests = "coalesce(days.requests, 0) + coalesce(others.requests, 0)"
    const place = sort_by === "latency" ? `(${weight}) / (${requests})` : weight
    const names = yield* textRows.all(
      sql`SELECT name AS value FROM (${weights(days)}) AS days FULL JOIN (${weights(others)}) AS others USING (name)
        ORDER BY ${sql.literal(query.sort_order === "asc" ? place : `-(${place})`)}, name
        LIMIT ${breakdown_limit} OFFSET ${breakdown_offset}`.unprepared
    )
    if (names.length === 0) return []
    const page = names.map(({ value }) => value)
    const read = yield* groupRows.all(
      sql`SELECT 'tasks' AS dimension, name, name AS display_name, ${usageSql.sums} FROM (${matching}) AS matching
        WHERE ${sql.in("name", page)} GROUP BY name`.unprepared
    )
    return page.flatMap((name) => read.filter((row) => row.name === name)).map(toGroup)
  })

  const countLabelled = (matching: Fragment) =>
    Effect.map(
      countRows.only(
        sql`SELECT count(*) AS count FROM (SELECT 1 FROM (${matching}) AS matching LIMIT ${maxLabelled + 1}) AS counted`
          .unprepared
      ),
      ({ count }) => count
    )

  const readUnusedKeys = ({ from, limit = defaultLimits.unused, project_id, to }: UnusedQuery) =>
    keyRows.all(
      sql`SELECT id AS key_id, name, key_prefix, project_id, created_at, last_used_at FROM api_keys
        WHERE ${sql.and(project_id === undefined ? [] : [sql`project_id = ${project_id}`])}
          AND NOT EXISTS (SELECT 1 FROM usage_events WHERE ${sql.and([
            sql`key_id = api_keys.id`,
            ...(from === undefined ? [] : [sql`usage_events.created_at >= ${DateTime.toDateUtc(from)}`]),
            ...(to === undefined ? [] : [sql`usage_events.created_at < ${DateTime.toDateUtc(to)}`])
          ])})
          AND NOT EXISTS (SELECT 1 FROM usage_rollups WHERE ${sql.and([
            // The retention job may have deleted the usage records, but not their hourly sums.
            sql`key_id = api_keys.id AND grain = 'hour'`,
            ...(from === undefined ? [] : [sql`bucket >= ${DateTime.toDateUtc(from)}`]),
            ...(to === undefined ? [] : [sql`bucket + interval '1 hour' <= ${DateTime.toDateUtc(to)}`])
          ])})
        ORDER BY api_keys.created_at DESC, api_keys.id DESC LIMIT ${limit}`.unprepared
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

    breakdown: Effect.fn("Usage.breakdown")((by: Dimension, query: BreakdownQuery) =>
      analyze(query, (watermark) =>
        Effect.gen(function* () {
          const range = yield* groups.divide(query, watermark, "day")
          if (by === "tasks") return yield* taskBreakdown(query, range)
          const matching = groups.rows(query, range, dimensionOf[by], rollupDetails[by])
          return (yield* groupRows.all(breakdownStatement(by, matching, query).unprepared)).map(toGroup)
        })
      )
    ),

    breakdownByLabel: Effect.fn("Usage.breakdownByLabel")((by: FreeLabel, query: BreakdownQuery) => {
      const matching = usageSql.matchingLabels(query, freeLabels[by])
      return analyze(query, () =>
        Effect.gen(function* () {
          if ((yield* countLabelled(matching)) > maxLabelled) return yield* tooManyLabelled
          return (yield* groupRows.all(breakdownStatement(by, matching, query).unprepared)).map(toGroup)
        })
      )
    }),

    dashboard: Effect.fn("Usage.dashboard")((query: DashboardQuery) =>
      analyze(query, (watermark) =>
        Effect.gen(function* () {
          // Reads the rest of the range once. Every breakdown then aggregates the result.
          const range = yield* groups.divide(query, watermark, "day")
          const merged = usageSql.merged(groups.rest(query, range, "keys"))
          const rowsOf = (dimension: UsageSums.Dimension | "all") =>
            groups.grouped(query, range, dimension, sql`SELECT * FROM merged`)
          const parts = commonBreakdowns.map((by) => sql`(${breakdownStatement(by, rowsOf(dimensionOf[by]), query)})`)
          const read = yield* groupRows.all(
            sql`WITH merged AS MATERIALIZED (${merged})
              SELECT 'all' AS dimension, '' AS name, ${usageSql.sums}, NULL::double precision AS place, '' AS display_name
              FROM (${rowsOf("all")}) AS matching
              UNION ALL ${sql.join(" UNION ALL ", false)(parts)}`.unprepared
          )
          const of = (by: Dimension) => read.filter(({ dimension }) => dimension === by).map(toGroup)
          const all = read.find(({ dimension }) => dimension === "all")
          const tasks = yield* taskBreakdown(query, range)
          const page = pageOf(query.timeseries_limit, query.timeseries_offset)
          const servicePage = pageOf(query.service_timeseries_limit, query.service_timeseries_offset)
          const timeseries = yield* series(query, watermark, page, false)
          const serviceTimeseries = yield* series(query, watermark, servicePage, true)
          return {
            summary: all === undefined ? yield* total(query, watermark) : UsageSql.toSummary(all),
            breakdowns: {
              projects: of("projects"),
              keys: of("keys"),
              teams: of("teams"),
              services: of("services"),
              endpoints: of("endpoints"),
              providers: of("providers"),
              models: of("models"),
              tasks
            },
            timeseries: timeseries.slice(0, page.limit).map(toBucket),
            service_timeseries: serviceTimeseries
              .slice(0, servicePage.limit)
              .map((row) => ({ ...toBucket(row), name: row.name })),
            timeseries_page: { ...page, has_more: timeseries.length > page.limit },
            service_timeseries_page: { ...servicePage, has_more: serviceTimeseries.length > servicePage.limit },
            unused_keys: yield* readUnusedKeys({
              ...(query.from && { from: query.from }),
              ...(query.to && { to: query.to }),
              ...(query.project_id && { project_id: query.project_id })
            })
          }
        })
      )
    ),

    values: Effect.fn("Usage.values")(function* (field, prefix, limit = defaultLimits.values) {
      if (!isField(field)) {
        return yield* new ControlError(
          "invalid_usage_query",
          `field must be one of ${FilterField.literals.join(", ")}.`,
          {
            param: "field"
          }
        )
      }
      const startsWith = (column: string) =>
        sql`${sql.literal(column)} >= ${prefix} AND ${sql.literal(column)} < ${`${prefix}${lastCharacter}`}`
      if (field === "session_id" || field === "end_user") {
        return yield* analyze({}, () =>
          Effect.map(
            textRows.all(
              sql`SELECT DISTINCT ${sql.literal(field)} AS value FROM usage_events
                WHERE ${sql.literal(field)} IS NOT NULL AND ${startsWith(field)} ORDER BY 1 LIMIT ${limit}`.unprepared
            ),
            (read) => ({ field, values: read.map(({ value }) => value) })
          )
        )
      }
      const { bucket, event, part } = valueColumns[field]
      return yield* analyze({}, (watermark) =>
        Effect.map(
          textRows.all(
            sql`SELECT DISTINCT value FROM (
                (SELECT DISTINCT ${sql.literal(bucket)} AS value FROM usage_rollups
                  WHERE grain = 'day' AND ${sql.literal(part)} AND ${startsWith(bucket)} ORDER BY 1 LIMIT ${limit})
                UNION ALL
                (SELECT DISTINCT ${sql.literal(event)} COLLATE "C" AS value FROM usage_events
                  WHERE created_at >= ${new Date(watermark)} AND ${startsWith(`(${event} COLLATE "C")`)} ORDER BY 1 LIMIT ${limit})
              ) AS found ORDER BY 1 LIMIT ${limit}`.unprepared
          ),
          (read) => ({ field, values: read.map(({ value }) => value) })
        )
      )
    }),

    unusedKeys: Effect.fn("Usage.unusedKeys")((query: UnusedQuery) => analyze(query, () => readUnusedKeys(query)))
  })
})

const dimensionOf = {
  projects: "project",
  keys: "key",
  teams: "team",
  services: "service",
  endpoints: "endpoint",
  providers: "provider",
  models: "model",
  tasks: "task",
  clients: "client",
  subjects: "subject"
} as const satisfies Readonly<Record<string, UsageSums.Dimension>>

const freeLabels = { sessions: "session_id", endUsers: "end_user" } as const

/** Deleted projects and keys are shown by their ids. */
export const displayNames: Partial<Record<Dimension | FreeLabel, string>> = {
  projects: `CASE WHEN summed.name = 'individual' THEN summed.name ELSE
    coalesce((SELECT projects.name FROM projects WHERE projects.id = summed.name::uuid), summed.name) END`,
  keys: `coalesce((SELECT coalesce(api_keys.name, api_keys.key_prefix) FROM api_keys
    WHERE api_keys.id = summed.name::uuid), summed.name)`
}

const rollupDetails: Readonly<Record<Dimension, UsageSql.RollupDetail>> = {
  projects: "keys",
  keys: "keys",
  teams: "keys",
  services: "overview",
  endpoints: "keys",
  providers: "overview",
  models: "keys",
  tasks: "tasks",
  clients: "keys",
  subjects: "keys"
}

/** The dashboard computes these breakdowns from one result. Tasks need other rows of the rollups. */
const commonBreakdowns = ["projects", "keys", "teams", "services", "endpoints", "providers", "models"] as const

/** Sums of `bigint` take PostgreSQL twice as long in 200,000 groups. Those of doubles are exact up to 2^53. */
const sortExpressions: Readonly<Record<BreakdownSort, string>> = {
  requests: "sum(request_count::double precision)",
  cost: "sum(cost_nanos::double precision)",
  failures: "coalesce(sum(request_count::double precision) FILTER (WHERE status_code >= 400), 0)",
  success: "coalesce(sum(request_count::double precision) FILTER (WHERE status_code < 400), 0)",
  latency: "sum(total_latency_ms::double precision) / sum(request_count::double precision)",
  tokens: "sum(total_tokens::double precision)",
  fallbacks: "sum(fallback_count::double precision)"
}

const weightExpressions: Readonly<Record<BreakdownSort, string>> = {
  ...sortExpressions,
  latency: "sum(total_latency_ms::double precision)"
}

/** Sorting by this expression in ascending order yields the requested order. */
const orderExpression = (by: BreakdownSort, order: SortOrder): string =>
  order === "asc" ? sortExpressions[by] : `-(${sortExpressions[by]})`

const valueColumns: Readonly<
  Record<
    Exclude<FilterField, "session_id" | "end_user">,
    { readonly bucket: string; readonly event: string; readonly part: string }
  >
> = {
  route: { bucket: "route", event: "route", part: "part <> 'task'" },
  provider: { bucket: "provider", event: "provider", part: "part <> 'task'" },
  service: { bucket: "service_name", event: "service_name", part: "part <> 'task'" },
  endpoint: { bucket: "endpoint", event: UsageSums.endpointOfEvent, part: "part <> 'task'" },
  model: { bucket: "model", event: UsageSums.modelOfEvent, part: "part <> 'task'" },
  task_id: { bucket: "task_id", event: "task_id", part: "part = 'task'" },
  run_id: { bucket: "run_id", event: "run_id", part: "part = 'task'" },
  client: { bucket: "client", event: "client", part: "part <> 'task'" },
  subject: { bucket: "subject", event: "subject", part: "part <> 'task'" },
  team_id: { bucket: "team_id", event: "team_id", part: "part <> 'task'" },
  project_id: { bucket: `(project_id::text COLLATE "C")`, event: "project_id::text", part: "part <> 'task'" },
  key_id: { bucket: `(key_id::text COLLATE "C")`, event: "key_id::text", part: "part <> 'task'" }
}

const isField = Schema.is(FilterField)

/** In the collation "C", no character of a valid text sorts after this one. */
const lastCharacter = "\u{10ffff}"

interface Page {
  readonly limit: number
  readonly offset: number
}

const pageOf = (limit = defaultLimits.series, offset = 0): Page => ({ limit, offset })

const sumRow = computedRows(UsageSql.Sums)
const groupRows = computedRows(
  Schema.Struct({
    dimension: Schema.String,
    name: Schema.String,
    display_name: Schema.String,
    ...UsageSql.Sums.fields
  })
)
const bucketRows = computedRows(
  Schema.Struct({ bucket: Schema.DateTimeUtcFromDate, name: Schema.String, ...UsageSql.Sums.fields })
)
const countRows = computedRows(Schema.Struct({ count: Count }))
const textRows = computedRows(Schema.Struct({ value: Schema.String }))
const keyRows = storedRows(
  Schema.Struct({
    ...UnusedKey.fields,
    created_at: Schema.DateTimeUtcFromDate,
    last_used_at: Schema.NullOr(Schema.DateTimeUtcFromDate)
  }),
  { table: "api_keys", key: ["id"] }
)

const toGroup = (row: { readonly name: string; readonly display_name: string } & UsageSql.Sums) => ({
  name: row.name,
  display_name: row.display_name,
  summary: UsageSql.toSummary(row)
})
const toBucket = (row: { readonly bucket: DateTime.Utc } & UsageSql.Sums) => ({
  bucket: row.bucket,
  summary: UsageSql.toSummary(row)
})

const tooManyLabelled = new ControlError(
  "invalid_usage_query",
  `More than ${maxLabelled} requests match; narrow the time range with from and to, or filter by key_id or project_id.`,
  { param: "from" }
)

type Range = Pick<UsageFilter, "from" | "to">

export const validateRange = ({ from, to }: Range): Effect.Effect<void, Refused<"invalid_usage_query">> =>
  from === undefined || to === undefined || DateTime.isLessThan(from, to)
    ? Effect.void
    : Effect.fail(new ControlError("invalid_usage_query", "from must be earlier than to.", { param: "from" }))
