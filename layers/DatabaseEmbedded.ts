import * as PgPool from "@effect/sql-pg/PgPool"
import { PGlite } from "@electric-sql/pglite"
import { Context, Effect, Layer, Option, type Scope } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlError } from "effect/sql"
import { Database } from "../src/services/Database.ts"
import * as SubscriberQueue from "../src/services/SubscriberQueue.ts"
import { DataDirectory } from "./data/DataDirectory.ts"
import { DataRefused, DataUnusable, unusable } from "./data/DataRefused.ts"
import * as DatabaseCommon from "./postgres/DatabaseCommon.ts"
import * as EmbeddedStorage from "./postgres/EmbeddedStorage.ts"
import * as InstrumentedSql from "./postgres/InstrumentedSql.ts"
import * as PgliteWire from "./postgres/PgliteWire.ts"
import * as PreparedDatabase from "./postgres/PreparedDatabase.ts"

/**
 * PostgreSQL inside the process (PGlite). PGlite has only one session, so statements run one at a time. LISTEN would
 * occupy this session. Change notices are therefore delivered inside the process, after the outermost transaction
 * commits.
 */
const make = Effect.fnUntraced(function* (
  postgres: PGlite
): Effect.fn.Return<Database["Service"], SqlError.SqlError, Reactivity.Reactivity | Scope.Scope> {
  const pool = yield* PgPool.make({
    stream: () => PgliteWire.connect(postgres),
    ssl: false,
    username: "postgres",
    database: "postgres",
    applicationName: "svc-runtime",
    minConnections: 1,
    maxConnections: 1
  })
  const sql = yield* InstrumentedSql.make(pool)
  const notices = SubscriberQueue.fanout(DatabaseCommon.laggingError)
  return Database.of({
    sql,
    ping: DatabaseCommon.ping(sql),
    transaction: DatabaseCommon.transaction(sql),
    // This NOTIFY reaches no subscriber. It makes PostgreSQL reject the same invalid names and payloads as a server.
    notify: (channel, payload) =>
      Effect.andThen(
        DatabaseCommon.notify(sql)(channel, payload),
        sql.afterCommit(Effect.sync(() => notices.publish(channel, payload)))
      ),
    changes: (name) =>
      DatabaseCommon.checkedChannel(name).pipe(
        Effect.flatMap(notices.subscribe),
        Effect.map((inbox) => inbox.messages)
      )
  })
})

const close = (postgres: PGlite) =>
  Effect.promise(() => postgres.close()).pipe(Effect.timeoutOption("5 seconds"), Effect.ignoreCause)

/** A checkpoint makes the next start faster, because it has less to recover. */
const closeOnDisk = (postgres: PGlite) =>
  Effect.andThen(
    Effect.promise(() => postgres.exec("CHECKPOINT")).pipe(Effect.timeoutOption("5 seconds"), Effect.ignoreCause),
    close(postgres)
  )

const startFailure = (cause: unknown) =>
  new SqlError.SqlError({
    reason: new SqlError.ConnectionError({
      cause,
      message: "The embedded database did not start",
      operation: "connect"
    })
  })

/**
 * What the database of `layer` begins with, in the form of PGlite's `dumpDataDir`. Default: nothing. Tests with many
 * databases begin with one that has the schema.
 */
export const Snapshot = Context.Reference<Option.Option<Blob>>("svc/DatabaseEmbedded/Snapshot", {
  defaultValue: Option.none
})

const open = Effect.flatMap(Snapshot, (snapshot) =>
  Effect.tryPromise({
    try: async () =>
      PGlite.create(Option.isSome(snapshot) ? { loadDataDir: snapshot.value } : await PreparedDatabase.options()),
    catch: startFailure
  })
)

/** The data is lost when the layer closes. */
export const layer: Layer.Layer<Database, SqlError.SqlError> = Layer.effect(
  Database,
  Effect.flatMap(Effect.acquireRelease(open, close), make)
).pipe(Layer.provide(Reactivity.layer))

/** The data stays in the data directory. */
export const layerOnDisk: Layer.Layer<Database, SqlError.SqlError | DataRefused | DataUnusable, DataDirectory> =
  Layer.effect(
    Database,
    Effect.gen(function* () {
      const { path } = yield* DataDirectory
      const open = Effect.tryPromise({
        try: () => EmbeddedStorage.open(path),
        catch: (cause) =>
          cause instanceof DataRefused || cause instanceof DataUnusable ? cause : unusable(path, cause)
      })
      const database = yield* make(yield* Effect.acquireRelease(open, closeOnDisk))
      yield* EmbeddedStorage.maintain(database.sql)
      return database
    })
  ).pipe(Layer.provide(Reactivity.layer))
