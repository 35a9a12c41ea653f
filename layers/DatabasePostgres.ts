import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as PgPool from "@effect/sql-pg/PgPool"
import { Effect, Layer, RcRef, Redacted, Schedule, Stream } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlError } from "effect/sql"
import { Database } from "../src/services/Database.ts"
import * as CountedSql from "./CountedSql.ts"
import * as Inbox from "./Inbox.ts"
import * as SqlDoor from "./SqlDoor.ts"

export interface Options {
  readonly url: Redacted.Redacted
  /** Sessions for statements; followers of changes share one more. */
  readonly maxConnections?: number
}

const make = Effect.fnUntraced(function* (options: Options) {
  // The driver's own refusal would carry the URL, and the password with it.
  if (!URL.canParse(Redacted.value(options.url))) return yield* notAUrl
  const config: PgPool.Config = {
    url: options.url,
    maxConnections: options.maxConnections ?? 10,
    connectTimeout: "5 seconds",
    keepAlive: "5 seconds",
    applicationName: "svc-runtime"
  }
  const sql = yield* CountedSql.make(yield* PgPool.make(config))
  const changes = yield* listener(config)
  yield* yield* SqlDoor.answers(sql, "6 seconds")
  const ping = yield* SqlDoor.answers(sql, "2 seconds")
  return Database.of({ sql, ping, changes, transaction: SqlDoor.transaction(sql), notify: SqlDoor.notify(sql) })
})

/** One session for all followers, opened by the first and closed by the last. */
const listener = Effect.fnUntraced(function* (config: PgConnection.Config) {
  let current: PgConnection.PgConnection | undefined
  const open = Effect.gen(function* () {
    const session = yield* Effect.flatMap(PgConnection.make(config), (connection) => connection.pin)
    yield* Effect.forkScoped(heartbeat(session))
    current = session
    return session
  })
  const sessions = yield* RcRef.make({ acquire: open })
  // Each of its followers sees a lost session fail; the first to notice must not discard what replaced it.
  const discard = (lost: PgConnection.PgConnection) =>
    Effect.suspend(() => (current === lost ? RcRef.invalidate(sessions) : Effect.void))

  return Effect.fnUntraced(function* (channel: string) {
    const session = yield* RcRef.get(sessions)
    const notices = yield* Effect.tapError(session.listen(channel), () => discard(session))
    const inbox = yield* Inbox.make(SqlDoor.lagging)
    yield* Stream.fromQueue(notices).pipe(
      Stream.runForEach(({ payload }) => Effect.sync(() => inbox.deliver(payload))),
      Effect.catch((error) =>
        Effect.andThen(
          discard(session),
          Effect.sync(() => inbox.fail(error))
        )
      ),
      Effect.forkScoped
    )
    return inbox.messages
  })
})

/**
 * A listener only reads, so a peer that vanished without a word would look like quiet. A question without an answer
 * makes the driver drop the session (after a grace of 5 seconds), and the followers fail.
 */
const heartbeat = (session: PgConnection.PgConnection) =>
  session.query("SELECT 1").pipe(Effect.timeout("1 second"), Effect.repeat(Schedule.spaced("2 seconds")), Effect.ignore)

const notAUrl = new SqlError.SqlError({
  reason: new SqlError.ConnectionError({
    cause: new Error("not a URL"),
    message: "The database URL is not a URL",
    operation: "connect"
  })
})

export const layer = (options: Options): Layer.Layer<Database, SqlError.SqlError> =>
  Layer.effect(Database, make(options)).pipe(Layer.provide(Reactivity.layer))
