import { existsSync } from "node:fs"
import { join } from "node:path"
import { Console, Context, Effect, Layer, Option, type Redacted } from "effect"
import { SqlError } from "effect/sql"
import { Database } from "../../src/services/Database.ts"
import { Redis } from "../../src/services/Redis.ts"
import { usageQueue } from "../../src/state/UsageQueue.ts"
import * as DatabaseEmbedded from "../DatabaseEmbedded.ts"
import * as DatabasePostgres from "../DatabasePostgres.ts"
import * as DataDirectory from "../data/DataDirectory.ts"
import type { Settings } from "../Environment.ts"
import * as CopyDatabase from "../postgres/CopyDatabase.ts"
import * as Migrations from "../postgres/Migrations.ts"
import * as RedisMemory from "../RedisMemory.ts"
import { StartRefused } from "../Startup.ts"
import { CommandFailed } from "./DatabaseCommands.ts"

export interface Destination {
  readonly data: Option.Option<string>
  readonly to: Option.Option<Redacted.Redacted>
}

/** Copies the embedded database of a data directory into an empty PostgreSQL database, in one transaction. */
export const run = Effect.fnUntraced(function* (settings: Settings, { data, to }: Destination) {
  const path = Option.getOrUndefined(Option.orElse(data, () => settings.dataDirectory))
  const url = Option.getOrUndefined(Option.orElse(to, () => settings.databaseUrl))
  if (path === undefined)
    return yield* new StartRefused({ message: "Name the data directory: --data or SVC_DATA_DIR." })
  if (url === undefined)
    return yield* new StartRefused({ message: "Name the PostgreSQL database: --to or DATABASE_URL." })
  if (!existsSync(join(path, "database"))) {
    return yield* new StartRefused({ message: `The directory ${path} contains no embedded database.` })
  }
  const opened = yield* Layer.build(
    Layer.merge(DatabaseEmbedded.layerOnDisk, RedisMemory.layerOnDisk({ prefix: settings.redisKeyPrefix })).pipe(
      Layer.provide(DataDirectory.layer(path))
    )
  )
  const source = Context.get(opened, Database)
  yield* Effect.provideContext(refuseQueuedUsage(settings), opened)
  yield* Effect.provideService(migrateSource, Database, source)
  const target = yield* Layer.build(DatabasePostgres.layer({ url })).pipe(
    Effect.map(Context.get(Database)),
    Effect.catchTag("SqlError", (error) => Effect.fail(targetFailed(error)))
  )
  const copied = yield* target
    .transaction(
      Effect.gen(function* () {
        if (!(yield* CopyDatabase.isEmpty(target.sql))) return yield* notEmpty
        yield* Effect.provideService(Migrations.run, Database, target)
        return yield* source.transaction(CopyDatabase.copy(source.sql, target.sql))
      })
    )
    .pipe(Effect.catchIf(SqlError.isSqlError, (error) => Effect.fail(targetFailed(error))))
  const width = Math.max(...copied.map(({ name }) => name.length))
  for (const { name, rows } of copied) yield* Console.log(`${name.padEnd(width)}  ${rows}`)
  yield* Console.log(
    "The database was exported. Redis and the broker were not: counters of limits are restored from usage, tasks stay in the directory."
  )
}, Effect.scoped)

const migrateSource = Effect.gen(function* () {
  yield* Migrations.run
  const [newer] = yield* Migrations.newerMigrations
  if (newer === undefined) return
  return yield* new CommandFailed({
    message: `The schema of the embedded database is newer than this version (${newer.name}). Export it with the version of svc-runtime that wrote it.`
  })
})

/** The records of usage pass through Redis on their way into the database. */
const refuseQueuedUsage = Effect.fnUntraced(function* (settings: Settings) {
  const { command, key } = yield* Redis
  if ((yield* command("LLEN", key(usageQueue))) === 0) return
  return yield* new CommandFailed({
    message: `Some usage records of the last run are not in the database yet, because the process was killed. Start svc-runtime once with this directory (REDIS_KEY_PREFIX ${settings.redisKeyPrefix}), stop it with SIGTERM, and export again.`
  })
})

const notEmpty = new CommandFailed({
  message: "Nothing was exported: the PostgreSQL database is not empty. Create a new database and export into it."
})

/** The message of the driver's error may contain the URL, and its cause does not. */
const targetFailed = ({ reason }: SqlError.SqlError) =>
  new CommandFailed({
    message: `Nothing was exported: ${reason.cause instanceof Error ? reason.cause.message : (reason.message ?? "the PostgreSQL database cannot be used")}`
  })
