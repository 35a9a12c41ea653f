import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { PGlite } from "@electric-sql/pglite"
import { Duration, Effect, Schedule } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { DataRefused, DataUnusable } from "../data/DataRefused.ts"
import * as PreparedDatabase from "./PreparedDatabase.ts"

/** The major version of PostgreSQL in the installed PGlite. It reads only directories of the same major version. */
export const postgresMajor = "18"

/**
 * Opens the database in `directory`, and creates it if there is none. PGlite writes every commit to the file before it
 * replies, so the commit survives the end of the process. The next start recovers as PostgreSQL does after a crash.
 */
export const open = async (directory: string): Promise<PGlite> => {
  const path = join(directory, "database")
  if (!existsSync(path)) await create(path)
  closeToOthers(path)
  const major = readFileSync(join(path, "PG_VERSION"), "utf8").trim()
  if (major !== postgresMajor) {
    throw new DataRefused({
      message: `The database in ${path} has the format of PostgreSQL ${major}, but this version of svc-runtime contains PostgreSQL ${postgresMajor}. Export it to a PostgreSQL server with the version of svc-runtime that wrote it (svc-runtime data export --data ${directory} --to postgres://…).`
    })
  }
  return start(path)
}

/** A process that ends during the creation leaves only the temporary directory, which the next one replaces. */
const create = async (path: string) => {
  const temporary = `${path}.new`
  rmSync(temporary, { recursive: true, force: true })
  mkdirSync(temporary, { mode: 0o700 })
  const created = await start(temporary, await PreparedDatabase.options())
  await created.exec("CHECKPOINT")
  await created.close()
  renameSync(temporary, path)
}

/**
 * Other users of the machine must not read or change the database. PGlite gives its files the mode 0666, so the mode of
 * their directory protects them.
 */
const closeToOthers = (path: string): void => {
  const { mode, uid } = statSync(path)
  if ((mode & 0o007) !== 0 && uid === process.getuid?.()) chmodSync(path, 0o700)
}

const start = async (dataDir: string, begin: { readonly loadDataDir?: Blob } = {}): Promise<PGlite> => {
  let reason: string | undefined
  let hasStarted = false
  const onStderr = (line: string): boolean => {
    const severity = ["] FATAL:", "] PANIC:"].find((one) => line.includes(one))
    if (severity !== undefined) reason = line.slice(line.indexOf(severity) + 2).replace(":  ", ": ")
    if (hasStarted && line.startsWith("Aborted(")) endProcess(dataDir, reason)
    return false
  }
  try {
    const postgres = await PGlite.create({ dataDir, relaxedDurability: false, onStderr, ...begin })
    hasStarted = true
    return postgres
  } catch (cause) {
    const problem = reason ?? (cause instanceof Error ? cause.message : String(cause))
    throw new DataUnusable({
      message: `The embedded database in ${dataDir} cannot be opened: ${problem}. If the disk is not full, the database is damaged: restore the data directory from a copy.`
    })
  }
}

/**
 * PostgreSQL panics where it cannot continue, for example when a full disk has no room for more write-ahead log, and the
 * next start recovers what was committed. PGlite ignores the panic and repeats the step for ever, without returning to
 * this process. So the process ends here.
 */
const endProcess = (dataDir: string, reason = "it aborted"): never => {
  process.stderr.write(
    `The embedded database in ${dataDir} cannot continue: ${reason}. svc-runtime ends. When the cause is removed, the next start finds everything that was committed.\n`
  )
  process.exit(1)
}

/** A checkpoint follows this number of bytes of write-ahead log, in which each segment has 16 MiB. */
const checkpointBytes = 33_554_432

/**
 * Does what background processes of a PostgreSQL server do, because PGlite has none: without checkpoints the
 * write-ahead log grows for ever, and without VACUUM the tables do.
 */
export const maintain = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  yield* checkpointIfLarge(sql).pipe(Effect.ignoreCause, Effect.repeat(Schedule.spaced("1 minute")), Effect.forkScoped)
  yield* vacuum(sql).pipe(
    Effect.ignoreCause,
    Effect.delay("10 minutes"),
    Effect.repeat(Schedule.spaced("1 hour")),
    Effect.forkScoped
  )
})

const checkpointIfLarge = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient
): Effect.fn.Return<void, SqlError.SqlError> {
  const [wal] = yield* sql<{ bytes: number }>`
    SELECT (pg_current_wal_lsn() - redo_lsn)::float8 AS bytes FROM pg_control_checkpoint()`
  if ((wal?.bytes ?? 0) > checkpointBytes) yield* sql.unsafe("CHECKPOINT")
})

/** The thresholds are those of PostgreSQL's autovacuum. */
export const vacuum = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient
): Effect.fn.Return<ReadonlyArray<string>, SqlError.SqlError> {
  yield* sql`SELECT pg_stat_force_next_flush()`
  const tables = yield* sql<{ name: string }>`
    SELECT format('%I.%I', schemaname, relname) AS name FROM pg_stat_user_tables
    WHERE n_dead_tup > 50 + 0.2 * n_live_tup OR n_mod_since_analyze > 50 + 0.1 * n_live_tup ORDER BY relname`
  for (const { name } of tables) {
    yield* sql.unsafe(`VACUUM (ANALYZE) ${name}`)
    // Requests that wait for the only session come first.
    yield* Effect.sleep(Duration.millis(50))
  }
  return tables.map(({ name }) => name)
})
