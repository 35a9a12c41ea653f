import { Effect, Layer, Schedule, Struct } from "effect"
import { Database } from "../services/Database.ts"

/**
 * Indexes that no migration makes, because a migration would keep requests and changes waiting while PostgreSQL reads
 * ten million rows. Those of `usage_events` are partial, so a request costs only those whose value it has.
 */
const indexes = {
  usage_events_by_subject: "usage_events (subject, created_at) WHERE subject IS NOT NULL",
  usage_events_by_end_user: "usage_events (end_user, created_at) WHERE end_user IS NOT NULL",
  usage_events_by_session: "usage_events (session_id, created_at) WHERE session_id IS NOT NULL",
  usage_events_by_error: "usage_events (error_code, created_at) WHERE error_code IS NOT NULL",
  usage_events_by_denial: "usage_events ((denial->>'check'), created_at) WHERE denial IS NOT NULL",
  // Finds the last apply of a document, and the changes since, also in a log of millions of other events.
  audit_events_by_action: "audit_events (action, sequence)"
} as const

export const names = Struct.keys(indexes)

/** Builds the indexes that are missing, beside all other work. */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const context = yield* Effect.context<Database>()
    const round = build.pipe(
      Effect.catch((cause) =>
        Effect.as(Effect.logWarning("building an index failed; the next attempt follows in a minute", { cause }), false)
      ),
      Effect.provide(context)
    )
    yield* Effect.forkScoped(
      Effect.repeat(round, { until: (complete) => complete, schedule: Schedule.spaced("1 minute") })
    )
  })
)

/** Returns true if all indexes are complete. */
export const build = Effect.gen(function* () {
  const { sql } = yield* Database
  const existing = yield* sql<{
    readonly name: keyof typeof indexes
    readonly valid: boolean
    readonly building: boolean
  }>`
    SELECT relname AS name, indisvalid AS valid,
      EXISTS (SELECT 1 FROM pg_stat_progress_create_index WHERE index_relid = indexrelid) AS building
    FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE ${sql.in("relname", names)}`
  // A process that ended during a build leaves an index that PostgreSQL does not use.
  for (const { name } of existing.filter(({ building, valid }) => !valid && !building))
    yield* sql.unsafe(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`)
  const left = existing.filter(({ building, valid }) => valid || building).map(({ name }) => name)
  for (const name of names.filter((name) => !left.includes(name)))
    yield* sql.unsafe(`CREATE INDEX CONCURRENTLY IF NOT EXISTS ${name} ON ${indexes[name]}`)
  return existing.every(({ building }) => !building)
}).pipe(Effect.withSpan("LateIndexes.build"))
