import { Effect } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Fragment } from "effect/sql/Statement"
import { Database } from "../../services/Database.ts"

export type Grain = "hour" | "day"

export const stepMs: Readonly<Record<Grain, number>> = { hour: 3_600_000, day: 86_400_000 }

/** In milliseconds since 1970. `start` is inclusive, `end` exclusive. */
export interface Span {
  readonly start: number
  readonly end: number
}

export const hoursOf = (day: number): Span => ({ start: day, end: day + stepMs.day })

export const floorTo = (at: number, step: number): number => Math.floor(at / step) * step

export const within = (sql: SqlClient, { end, start }: Span): Fragment =>
  sql.and([sql`bucket < ${new Date(end)}`, ...(Number.isFinite(start) ? [sql`bucket >= ${new Date(start)}`] : [])])

/** A PostgreSQL advisory lock. Two processes could otherwise mix the sums of two snapshots in one bucket. */
const summingLock = 7_238_413

/** The pause leaves the database time for requests and for the usage writer. */
const pause = "20 millis"

export const inSnapshot = Effect.fnUntraced(function* <E>(sum: Effect.Effect<void, E, Database>) {
  const { sql, transaction } = yield* Database
  yield* transaction(
    Effect.gen(function* () {
      yield* sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`
      const [lock] = yield* sql<{ mine: boolean }>`SELECT pg_try_advisory_xact_lock(${summingLock}) AS mine`
      if (lock?.mine === true) yield* sum
    })
  )
  yield* Effect.sleep(pause)
})
