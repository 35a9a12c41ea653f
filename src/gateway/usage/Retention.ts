import { DateTime, Effect, Layer, Schedule, Struct } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Fragment } from "effect/sql/Statement"
import { Database } from "../../services/Database.ts"

/** For how many days rows are kept, by what they are; what is not named is kept for ever. */
export type RetentionDays = Partial<Record<keyof typeof tables, number>>

interface RetainedTable {
  readonly name: string
  /** SQL: rows that may go when they were made before `before`, those to be deleted first. */
  readonly expired: (sql: SqlClient, before: Date) => Fragment
}

const tables = {
  /** Sums have to have an event before it goes. */
  usage: {
    name: "usage_events",
    expired: (sql, before) =>
      sql`created_at < least(${before}::timestamptz, (SELECT until FROM usage_rolled)) ORDER BY created_at`
  },
  usageSums: {
    name: "usage_rollups",
    // the index of its key begins with the first two
    expired: (sql, before) =>
      sql`grain IN ('hour', 'day') AND part IN ('overview', 'untasked', 'tasked', 'task') AND bucket < ${before}`
  },
  guardrailExecutions: {
    name: "guardrail_execution_events",
    expired: (sql, before) => sql`created_at < ${before} ORDER BY created_at`
  }
} satisfies Readonly<Record<string, RetainedTable>>

/**
 * Deletes what is older than it is to be kept: an hour after another, in small batches with a pause behind each, so that
 * no statement holds what a request waits for.
 */
export const layer = (kept: RetentionDays) =>
  Struct.keys(kept).length === 0
    ? Layer.empty
    : Layer.effectDiscard(
        Effect.gen(function* () {
          const context = yield* Effect.context<Database>()
          const round = sweep(kept).pipe(
            Effect.catch((cause) => Effect.logWarning("old rows wait to be deleted", { cause })),
            Effect.provide(context)
          )
          yield* Effect.forkScoped(Effect.repeat(round, Schedule.spaced("1 hour")))
        })
      )

/** Of several processes one works at a time. */
const sweeperLock = 7_238_412

/** Rows of one statement: some ten milliseconds. */
export const batchSize = 2000
const pause = "100 millis"

/** Deletes until nothing is left that is too old. Answers how many rows of each table went. */
export const sweep = Effect.fnUntraced(function* (kept: RetentionDays, size = batchSize) {
  const now = yield* DateTime.now
  const deletedRows: Record<string, number> = {}
  for (const kind of Struct.keys(tables)) {
    const days = kept[kind]
    if (days === undefined) continue
    const table = tables[kind]
    const before = DateTime.toDateUtc(DateTime.subtract(now, { days }))
    let rows = 0
    yield* deleteBatch(table, before, size).pipe(
      Effect.tap((count) => {
        rows += count
        return count === size ? Effect.sleep(pause) : Effect.void
      }),
      Effect.repeat({ while: (count) => count === size })
    )
    deletedRows[table.name] = rows
  }
  if (Object.values(deletedRows).some((rows) => rows > 0)) yield* Effect.logInfo("old rows were deleted", deletedRows)
  return deletedRows
})

const deleteBatch = Effect.fnUntraced(function* ({ name, expired }: RetainedTable, before: Date, size: number) {
  const { sql } = yield* Database
  // By their place in the table: the index finds them once.
  const [deleted] = yield* sql<{ count: number }>`
    WITH lock AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(${sweeperLock}) AS mine),
    deleted AS (DELETE FROM ${sql(name)} WHERE ctid = ANY(ARRAY(
      SELECT ctid FROM ${sql(name)} WHERE (SELECT mine FROM lock) AND ${expired(sql, before)} LIMIT ${size})) RETURNING 1)
    SELECT count(*)::integer AS count FROM deleted`
  return deleted?.count ?? 0
})
