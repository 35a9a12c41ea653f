import { fileURLToPath } from "node:url"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { Migrator, SqlClient, type SqlError } from "effect/sql"
import * as MigratorFileSystem from "effect/sql/MigratorFileSystem"
import type { RouteLimits } from "../../src/policy/routes/CanonicalRoute.ts"
import { Database } from "../../src/services/Database.ts"

type MigrationFailure = Migrator.MigrationError | SqlError.SqlError

/** The key of PostgreSQL's advisory lock. It is arbitrary, but all processes use the same one. */
const advisoryLock = 5_417_283_690n

/** A process that waits longer for the migration of another one fails. */
export const lockTimeoutSeconds = 60

/**
 * Runs the pending migrations of `directory` in one transaction. In an empty database it then runs `onEmptyDatabase`.
 * Returns the applied migrations. An advisory lock lets only one process migrate at a time. The migrator's own lock
 * needs a table, which an empty database does not have.
 */
export const runFrom = (
  directory: string,
  onEmptyDatabase: Effect.Effect<unknown, SqlError.SqlError, Database> = Effect.void
): Effect.Effect<ReadonlyArray<readonly [id: number, name: string]>, MigrationFailure, Database> =>
  Effect.gen(function* () {
    const { sql, transaction } = yield* Database
    const migrate = Migrator.make({})({
      loader: MigratorFileSystem.fromFileSystem(directory),
      table: "schema_migrations"
    })
    return yield* transaction(
      Effect.gen(function* () {
        yield* sql`SELECT set_config('lock_timeout', ${`${lockTimeoutSeconds}s`}, true)`
        yield* sql`SELECT pg_advisory_xact_lock(${advisoryLock})`
        const applied = yield* Effect.provideService(migrate, SqlClient.SqlClient, sql)
        if (applied.some(([id]) => id === 1)) yield* onEmptyDatabase
        return applied
      })
    )
  }).pipe(Effect.provide(NodeServices.layer))

const directory = fileURLToPath(new URL("../../migrations", import.meta.url))

export const run = runFrom(directory)

/** In an empty database, also sets the initial limits of all routes and of requests that match no route. */
export const runWithLimits = ({ maxRequestBodyBytes, maxResponseBodyBytes, timeoutMs }: RouteLimits) =>
  runFrom(
    directory,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const initialLimits = sql.update({
        timeout_ms: timeoutMs,
        max_request_body_bytes: maxRequestBodyBytes,
        max_response_body_bytes: maxResponseBodyBytes
      })
      yield* sql`UPDATE canonical_routes SET ${initialLimits}`
      yield* sql`UPDATE upstream_passthrough_settings SET ${initialLimits}`
    })
  )

/** The database contains this migration, but this version of the program does not. */
export interface NewerMigration {
  readonly id: number
  /** The prefix `incompatible_` means that older versions cannot work with the schema. */
  readonly name: string
}

export const newerMigrations: Effect.Effect<ReadonlyArray<NewerMigration>, MigrationFailure, Database> = Effect.gen(
  function* () {
    const { sql } = yield* Database
    const ownMigrations = yield* MigratorFileSystem.fromFileSystem(directory)
    const latest = Math.max(...ownMigrations.map(([id]) => id))
    const rows = yield* sql<{ id: number; name: string }>`SELECT migration_id::int AS id, name FROM schema_migrations
    WHERE migration_id > ${latest} ORDER BY migration_id`
    return rows
  }
).pipe(Effect.provide(NodeServices.layer))

export const isIncompatible = ({ name }: NewerMigration): boolean => name.startsWith("incompatible_")
