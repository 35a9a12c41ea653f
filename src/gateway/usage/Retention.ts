import { DateTime, Effect, Layer, Schedule, Struct } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Fragment } from "effect/sql/Statement"
import { Database } from "../../services/Database.ts"
import { labels, minuteLabels, minuteSumsHours } from "../../state/UsageSums.ts"

/** The number of days after which rows of each kind are deleted. Kinds without a number are kept forever. */
export type RetentionDays = Partial<Record<"usage" | "usageSums" | "guardrailExecutions", number>>

interface RetainedTable {
  readonly name: string
  readonly expired: (sql: SqlClient, before: Date) => Fragment
}

const dimensions = ["all", ...Struct.keys(labels), "task_type"]

const tables = {
  /** Usage events are kept until `usage_rollups` includes them. */
  usage: {
    name: "usage_events",
    expired: (sql, before) =>
      sql`created_at < least(${before}::timestamptz, (SELECT until FROM usage_rolled)) ORDER BY created_at`
  },
  usageSums: {
    name: "usage_rollups",
    // Naming `grain` and `part` lets the statement use the primary key, which begins with them.
    expired: (sql, before) =>
      sql`grain IN ('hour', 'day') AND part IN ('overview', 'untasked', 'tasked', 'task') AND bucket < ${before}`
  },
  usageSeries: {
    name: "usage_series",
    expired: (sql, before) =>
      sql`grain IN ('hour', 'day') AND dimension IN ${sql.in(dimensions)} AND bucket < ${before}`
  },
  minuteSums: {
    name: "usage_series",
    expired: (sql, before) =>
      sql`grain = 'minute' AND dimension IN ${sql.in(Struct.keys(minuteLabels))} AND bucket < ${before}`
  },
  guardrailExecutions: {
    name: "guardrail_execution_events",
    expired: (sql, before) => sql`created_at < ${before} ORDER BY created_at`
  }
} satisfies Readonly<Record<string, RetainedTable>>

/** Deletes expired rows every hour. Small batches keep each statement short, so that requests need not wait for it. */
export const layer = (kept: RetentionDays) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const context = yield* Effect.context<Database>()
      const round = sweep(kept).pipe(
        Effect.catch((cause) =>
          Effect.logWarning("deleting expired rows failed; the next attempt follows in an hour", { cause })
        ),
        Effect.provide(context)
      )
      yield* Effect.forkScoped(Effect.repeat(round, Schedule.spaced("1 hour")))
    })
  )

/** Sums by one dimension follow those by all dimensions. Sums by the minute are never kept for longer. */
const daysOf = ({ usageSums, ...kept }: RetentionDays): Partial<Record<keyof typeof tables, number>> => ({
  minuteSums: minuteSumsHours / 24,
  ...kept,
  ...(usageSums !== undefined && { usageSums, usageSeries: usageSums })
})

/** A PostgreSQL advisory lock, so that only one process deletes rows at a time. */
const sweeperLock = 7_238_412

/** Deleting this many rows takes PostgreSQL about ten milliseconds. */
const batchSize = 2000
const pause = "100 millis"

export const sweep = Effect.fn("Retention.sweep")(function* (kept: RetentionDays, size = batchSize) {
  const now = yield* DateTime.now
  const deletedRows: Record<string, number> = {}
  for (const kind of Struct.keys(tables)) {
    const days = daysOf(kept)[kind]
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
    if (rows > 0) deletedRows[table.name] = (deletedRows[table.name] ?? 0) + rows
  }
  if (Struct.keys(deletedRows).length > 0) yield* Effect.logInfo("expired rows were deleted", deletedRows)
  return deletedRows
})

const deleteBatch = Effect.fnUntraced(function* ({ name, expired }: RetainedTable, before: Date, size: number) {
  const { sql } = yield* Database
  // `ctid` addresses rows directly, so that the DELETE need not search the index a second time.
  const [deleted] = yield* sql<{ count: number }>`
    WITH lock AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(${sweeperLock}) AS mine),
    deleted AS (DELETE FROM ${sql(name)} WHERE ctid = ANY(ARRAY(
      SELECT ctid FROM ${sql(name)} WHERE (SELECT mine FROM lock) AND ${expired(sql, before)} LIMIT ${size})) RETURNING 1)
    SELECT count(*)::integer AS count FROM deleted`
  return deleted?.count ?? 0
})
