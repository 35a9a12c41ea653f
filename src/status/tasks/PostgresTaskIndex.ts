import { Clock, Effect, Layer, Schema, SchemaTransformation } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { Database } from "../../services/Database.ts"
import { IndexedTask, merge, type TaskChange } from "./IndexedTask.ts"
import { exactUpTo, type Looked, type TaskFilter, TaskIndex, TaskIndexError, type TaskPosition } from "./TaskIndex.ts"

export interface Options {
  /** The days that a task is kept after its latest status. Default: 30. */
  readonly keepDays?: number | undefined
  /** The maximum number of tasks that one list or count looks at. Default: 20,000. */
  readonly looksAtMost?: number | undefined
}

/** Writers take turns, because each merges what it has with what is stored. */
const advisoryLock = 5_417_283_726n

const trimBatch = 5_000

/** More statuses than programs have. A program that puts ids into its statuses must not make a count slow. */
const mostStatuses = 100

/** Keeps the index in the table `task_index`. */
export const make = Effect.fnUntraced(function* ({ keepDays = 30, looksAtMost = 20_000 }: Options = {}) {
  const { sql, transaction } = yield* Database

  const readStored = (ids: ReadonlyArray<string>) =>
    Effect.flatMap(
      sql`SELECT ${columns(sql)}, is_progress, is_terminal FROM task_index WHERE ${sql.in("task_id", ids)}`,
      decodeStored
    )

  const record = Effect.fnUntraced(function* (
    changes: ReadonlyArray<TaskChange>,
    progress?: { readonly source: string; readonly position: string }
  ) {
    yield* sql`SELECT pg_advisory_xact_lock(${advisoryLock})`
    if (changes.length > 0) {
      const stored = yield* readStored(changes.map(({ task }) => task.task_id))
      const known = new Map(
        stored.map(({ is_progress, is_terminal, ...task }) => [
          task.task_id,
          { task, isProgress: is_progress, isTerminal: is_terminal }
        ])
      )
      const rows = changes.map((change) => {
        const { isProgress, isTerminal, task } = merge(known.get(change.task.task_id), change)
        return { ...task, is_progress: isProgress, is_terminal: isTerminal }
      })
      yield* sql`INSERT INTO task_index (${sql.literal(names.join(", "))})
        SELECT ${sql.literal(names.join(", "))} FROM jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) AS given (${sql.literal(definitions)})
        ON CONFLICT (task_id) DO UPDATE SET ${sql.literal(updates)}`
    }
    if (progress !== undefined) {
      yield* sql`INSERT INTO task_index_progress ${sql.insert({ ...progress })}
        ON CONFLICT (source) DO UPDATE SET position = excluded.position`
    }
  })

  /** The newest tasks that the strongest filter selects. The bound keeps a search fast, whatever else it filters by. */
  const candidates = (filter: TaskFilter, after: TaskPosition | undefined, most: number) => {
    const { attributes = {}, since, until } = filter
    const strongest = strongestOf(filter)
    const conditions = [
      ...strongest.map((name) => sql`${sql(name)} = ${filter[name]}`),
      ...(since === undefined ? [] : [sql`last_micros >= ${since}::bigint`]),
      ...(until === undefined ? [] : [sql`last_micros < ${until}::bigint`]),
      ...(after === undefined ? [] : [sql`(last_micros, task_id) < (${after.micros}::bigint, ${after.id})`])
    ]
    const order = sql`ORDER BY last_micros DESC, task_id DESC`
    const condition = conditions.length === 0 ? sql`true` : sql.and(conditions)
    if (strongest.length === 0 && Object.keys(attributes).length > 0) {
      // Attributes select few tasks. Reading all of these first makes PostgreSQL use the index of attributes.
      const matching = sql`SELECT ${columns(sql)}, is_terminal FROM task_index WHERE attributes @> ${JSON.stringify(attributes)}::jsonb AND attributes <> '{}' LIMIT ${most + 1}`
      const found = sql`WITH matching AS MATERIALIZED (${matching}) SELECT * FROM matching`
      return sql`${found} WHERE ${condition} ${order} LIMIT ${most}`
    }
    return sql`SELECT ${columns(sql)}, is_terminal FROM task_index WHERE ${condition} ${order} LIMIT ${most}`
  }

  /** The filters beside the strongest one. */
  const rest = (filter: TaskFilter) => {
    const strongest = strongestOf(filter)
    const { attributes = {}, ended, q } = filter
    const conditions = [
      ...equalities.flatMap((name) =>
        filter[name] === undefined || strongest.includes(name) ? [] : [sql`${sql(name)} = ${filter[name]}`]
      ),
      ...(Object.keys(attributes).length === 0 ? [] : [sql`attributes @> ${JSON.stringify(attributes)}::jsonb`]),
      ...(ended === undefined ? [] : [sql`is_terminal = ${ended}`]),
      ...(q === undefined
        ? []
        : [
            sql`strpos(lower(task_id || ' ' || coalesce(message, '') || ' ' || coalesce(error_class, '')), lower(${q})) > 0`
          ])
    ]
    return conditions.length === 0 ? sql`true` : sql.and(conditions)
  }

  const extent = Effect.fnUntraced(function* (filter: TaskFilter, after: TaskPosition | undefined) {
    const [row] = yield* Effect.flatMap(
      sql`SELECT count(*)::int AS count, min(last_micros) AS oldest
        FROM (${candidates(filter, after, looksAtMost)}) AS looked`,
      decodeExtent
    )
    return { complete: (row?.count ?? 0) < looksAtMost, backTo: row?.oldest ?? undefined }
  })

  const lastCandidate = (filter: TaskFilter, after: TaskPosition | undefined) =>
    Effect.map(
      Effect.flatMap(
        sql`SELECT last_micros, task_id FROM (${candidates(filter, after, looksAtMost)}) AS looked
          ORDER BY last_micros ASC, task_id ASC LIMIT 1`,
        decodePosition
      ),
      ([last]): TaskPosition | undefined => last && { micros: last.last_micros, id: last.task_id }
    )

  const list = Effect.fnUntraced(function* (
    filter: TaskFilter,
    { after, limit }: { readonly limit: number; readonly after?: TaskPosition | undefined }
  ) {
    const found = yield* Effect.flatMap(
      sql`SELECT * FROM (${candidates(filter, after, looksAtMost)}) AS looked WHERE ${rest(filter)}
        ORDER BY last_micros DESC, task_id DESC LIMIT ${limit + 1}`,
      decodeTasks
    )
    const tasks = found.slice(0, limit)
    const last = tasks.at(-1)
    if (found.length > limit && last !== undefined) {
      const looked: Looked = { complete: false, backTo: last.last_micros }
      return { tasks, next: { micros: last.last_micros, id: last.task_id }, looked }
    }
    const looked = yield* extent(filter, after)
    return { tasks, next: looked.complete ? undefined : yield* lastCandidate(filter, after), looked }
  })

  /**
   * Without filters beside status and time, the index of statuses has each count. The order makes PostgreSQL read this
   * index. Without it, a rare status is looked for in the whole table.
   */
  const countsOfStatuses = ({ since, status, until }: TaskFilter) =>
    Effect.map(
      Effect.flatMap(
        sql`WITH RECURSIVE present AS (
            (SELECT status FROM task_index ORDER BY status LIMIT 1)
            UNION ALL
            SELECT (SELECT status FROM task_index WHERE status > present.status ORDER BY status LIMIT 1)
            FROM present WHERE present.status IS NOT NULL
          )
          SELECT status, counted.count FROM present CROSS JOIN LATERAL (
            SELECT count(*)::int AS count FROM (
              SELECT 1 FROM task_index WHERE status = present.status
                AND last_micros >= ${since ?? 0}::bigint AND last_micros < ${until ?? Number.MAX_SAFE_INTEGER}::bigint
              ORDER BY last_micros DESC LIMIT ${exactUpTo + 1}
            ) AS capped
          ) AS counted
          WHERE status IS NOT NULL AND counted.count > 0 AND (${status ?? null}::text IS NULL OR status = ${status ?? null}::text)
          LIMIT ${mostStatuses}`,
        decodeStatusCounts
      ),
      (rows) => ({
        counts: rows.map(({ count, status }) => ({
          status,
          count: Math.min(count, exactUpTo),
          at_least: count > exactUpTo
        })),
        looked: { complete: true, backTo: undefined }
      })
    )

  const counts = Effect.fnUntraced(function* (filter: TaskFilter) {
    if (isOfStatusesOnly(filter)) return yield* countsOfStatuses(filter)
    const rows = yield* Effect.flatMap(
      sql`SELECT status, count(*)::int AS looked, count(*) FILTER (WHERE ${rest(filter)})::int AS count, min(last_micros) AS oldest
        FROM (${candidates(filter, undefined, looksAtMost)}) AS looked GROUP BY status ORDER BY status`,
      decodeCounts
    )
    const complete = rows.reduce((sum, { looked }) => sum + looked, 0) < looksAtMost
    return {
      counts: rows
        .filter(({ count }) => count > 0)
        .map(({ count, status }) => ({
          status,
          count: Math.min(count, exactUpTo),
          at_least: !complete || count > exactUpTo
        })),
      looked: { complete, backTo: rows.length === 0 ? undefined : Math.min(...rows.map(({ oldest }) => oldest)) }
    }
  })

  const trim = Effect.gen(function* () {
    const before = ((yield* Clock.currentTimeMillis) - keepDays * 86_400_000) * 1_000
    let removed = 0
    for (;;) {
      const gone = yield* sql`DELETE FROM task_index WHERE task_id IN (
        SELECT task_id FROM task_index WHERE last_micros < ${before}::bigint ORDER BY last_micros LIMIT ${trimBatch}) RETURNING 1 AS one`
      removed += gone.length
      if (gone.length < trimBatch) return removed
    }
  })

  return TaskIndex.of({
    kept: { store: "postgresql", looksAtMost, tasksAtMost: null, days: keepDays },
    record: (changes, progress) => orIndexError(transaction(record(changes, progress))),
    progress: (source) =>
      orIndexError(
        Effect.map(
          Effect.flatMap(sql`SELECT position FROM task_index_progress WHERE source = ${source}`, decodeProgress),
          ([row]) => row?.position
        )
      ),
    get: (taskId) =>
      orIndexError(
        Effect.map(
          Effect.flatMap(sql`SELECT ${columns(sql)} FROM task_index WHERE task_id = ${taskId}`, decodeTasks),
          ([task]) => task
        )
      ),
    list: (filter, page) => orIndexError(list(filter, page)),
    counts: (filter) => orIndexError(counts(filter)),
    trim: orIndexError(trim)
  })
})

export const layer = (options?: Options): Layer.Layer<TaskIndex, never, Database> =>
  Layer.effect(TaskIndex, make(options))

const orIndexError = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, TaskIndexError, R> =>
  Effect.mapError(work, (cause) => new TaskIndexError({ cause }))

const equalities = ["parent_id", "error_class", "task_type", "status", "worker", "queue"] as const

/** The filters that one index has, from those that select the fewest tasks. */
const strongestOf = (filter: TaskFilter): ReadonlyArray<(typeof equalities)[number]> => {
  if (filter.parent_id !== undefined) return ["parent_id"]
  if (filter.error_class !== undefined) return ["error_class"]
  return (["task_type", "status"] as const).filter((name) => filter[name] !== undefined)
}

const isOfStatusesOnly = ({ since: _, status: __, until: ___, ...others }: TaskFilter): boolean =>
  Object.values(others).every((value) => value === undefined)

const types = {
  task_id: "text",
  task_type: "text",
  status: "text",
  first_micros: "bigint",
  last_micros: "bigint",
  attempt: "integer",
  queue: "text",
  worker: "text",
  parent_id: "text",
  error_class: "text",
  message: "text",
  attributes: "jsonb",
  is_progress: "boolean",
  is_terminal: "boolean"
} as const
const names = Object.keys(types)
const definitions = Object.entries(types)
  .map(([name, type]) => `${name} ${type}`)
  .join(", ")
const updates = names
  .filter((name) => name !== "task_id")
  .map((name) => `${name} = excluded.${name}`)
  .join(", ")

const taskColumns = Object.keys(IndexedTask.fields)

const columns = (sql: SqlClient) => sql.literal(taskColumns.join(", "))

/** Microseconds since 1970 fit into a number. */
const Micros = Schema.BigInt.pipe(
  Schema.decodeTo(Schema.Number, SchemaTransformation.transform({ decode: Number, encode: BigInt }))
)

const TaskRow = Schema.Struct({ ...IndexedTask.fields, first_micros: Micros, last_micros: Micros })

const rowsOf = <S extends Schema.ConstraintDecoder<unknown>>(row: S) => Schema.decodeUnknownEffect(Schema.Array(row))

const decodeTasks = rowsOf(TaskRow)
const decodeStored = rowsOf(
  Schema.Struct({ ...TaskRow.fields, is_progress: Schema.Boolean, is_terminal: Schema.Boolean })
)
const decodeExtent = rowsOf(Schema.Struct({ count: Schema.Number, oldest: Schema.NullOr(Micros) }))
const decodePosition = rowsOf(Schema.Struct({ last_micros: Micros, task_id: Schema.String }))
const decodeCounts = rowsOf(
  Schema.Struct({ status: Schema.String, looked: Schema.Number, count: Schema.Number, oldest: Micros })
)
const decodeStatusCounts = rowsOf(Schema.Struct({ status: Schema.String, count: Schema.Number }))
const decodeProgress = rowsOf(Schema.Struct({ position: Schema.String }))
