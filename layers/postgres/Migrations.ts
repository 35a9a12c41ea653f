import { fileURLToPath } from "node:url"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { Migrator, SqlClient, type SqlError } from "effect/sql"
import * as MigratorFileSystem from "effect/sql/MigratorFileSystem"
import type { RouteLimits } from "../../src/policy/routes/CanonicalRoute.ts"
import { Database } from "../../src/services/Database.ts"

type MigrationFailure = Migrator.MigrationError | SqlError.SqlError

/** An arbitrary number, the same in every process. */
const advisoryLock = 5_417_283_690n

/**
 * Runs every migration of `directory` above the last applied number, in one transaction. In an empty database it then
 * runs `onEmptyDatabase`. Returns the applied migrations.
 *
 * Processes that start together take turns. The migrator's own lock is on its table, which two processes would both try
 * to create in an empty database.
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
        yield* sql`SELECT set_config('lock_timeout', '60s', true)`
        yield* sql`SELECT pg_advisory_xact_lock(${advisoryLock})`
        const applied = yield* Effect.provideService(migrate, SqlClient.SqlClient, sql)
        if (applied.some(([id]) => id === 1)) yield* onEmptyDatabase
        return applied
      })
    )
  }).pipe(Effect.provide(NodeServices.layer))

const directory = fileURLToPath(new URL("../../migrations", import.meta.url))

export const run = runFrom(directory)

/** Runs the migrations. In an empty database, also sets the initial limits of the routes and the wildcard. */
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

/** An applied migration that this version of the program does not contain. */
export interface NewerMigration {
  readonly id: number
  /** Begins with `incompatible_` when programs without this migration cannot work with the schema. */
  readonly name: string
}

/** Migrations that a newer version of the program has applied. */
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
