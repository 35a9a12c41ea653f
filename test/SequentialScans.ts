import { Effect } from "effect"
import { Database } from "../src/services/Database.ts"

/** Tables of so few rows are read as a whole, because no index is faster. */
const fewRows = 1000

/** Runs `work` in a transaction, and returns the large tables that PostgreSQL read as a whole meanwhile. */
export const sequentialScans = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.flatMap(Database, ({ sql, transaction }) => {
    const scans = Effect.map(
      sql<{ readonly name: string; readonly scans: number }>`
        SELECT pg_class.relname AS name, seq_scan::int AS scans
        FROM pg_stat_xact_user_tables JOIN pg_class ON pg_class.oid = relid WHERE reltuples > ${fewRows} ORDER BY 1`,
      (rows) => new Map(rows.map((row) => [row.name, row.scans]))
    )
    return transaction(
      Effect.gen(function* () {
        const before = yield* scans
        const result = yield* work
        const after = yield* scans
        return { result, scanned: [...after.keys()].filter((name) => after.get(name) !== before.get(name)) }
      })
    )
  })
