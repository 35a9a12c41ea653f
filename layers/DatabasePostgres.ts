import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as PgPool from "@effect/sql-pg/PgPool"
import { Cause, Effect, Exit, Layer, RcRef, Redacted, Schedule, Scope, Stream } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlError } from "effect/sql"
import { Database } from "../src/services/Database.ts"
import * as SubscriberQueue from "../src/services/SubscriberQueue.ts"
import * as DatabaseCommon from "./postgres/DatabaseCommon.ts"
import * as InstrumentedSql from "./postgres/InstrumentedSql.ts"
import { withDeadline } from "./postgres/SqlDeadline.ts"

export interface Options {
  readonly url: Redacted.Redacted
  /** Sessions for statements; followers of changes and pings share one more. */
  readonly maxConnections?: number
  /** The sessions' `application_name`. */
  readonly name?: string
}

const make = Effect.fnUntraced(function* (options: Options) {
  // The driver's own refusal would carry the URL, and the password with it.
  if (!URL.canParse(Redacted.value(options.url))) return yield* invalidUrl
  const config: PgPool.Config = {
    url: options.url,
    maxConnections: options.maxConnections ?? 10,
    connectTimeout: "5 seconds",
    keepAlive: "5 seconds",
    applicationName: options.name ?? "svc-runtime"
  }
  const sql = yield* InstrumentedSql.make(yield* PgPool.make(config))
  const { changes, ping } = yield* makeListener(config)
  yield* withDeadline("6 seconds")(sql`SELECT 1`)
  return Database.of({
    sql,
    changes,
    ping,
    transaction: DatabaseCommon.transaction(sql),
    notify: DatabaseCommon.notify(sql)
  })
})

/**
 * One session for all followers and for pings, opened by the first and closed by the last. A ping must not wait for a
 * session of the pool: however busy those are, the server is there.
 */
const makeListener = Effect.fnUntraced(function* (config: PgConnection.Config) {
  let current: PgConnection.PgConnection | undefined
  const sessions = yield* RcRef.make({
    acquire: Effect.tap(openSession(config), (session) =>
      Effect.sync(() => {
        current = session
      })
    )
  })
  // Each of its followers sees a lost session fail; the first to notice must not discard what replaced it.
  const discard = (session: PgConnection.PgConnection) =>
    Effect.suspend(() => (current === session ? RcRef.invalidate(sessions) : Effect.void))

  const ping = Effect.scoped(Effect.flatMap(RcRef.get(sessions), (session) => session.query("SELECT 1"))).pipe(
    withDeadline("2 seconds"),
    Effect.asVoid
  )

  const changes = Effect.fnUntraced(function* (name: string) {
    const channel = yield* DatabaseCommon.checkedChannel(name)
    const session = yield* RcRef.get(sessions)
    const listenScope = yield* Scope.make()
    // Leaving sends UNLISTEN. It is not waited for: on a silent server it ends with the session.
    yield* Effect.addFinalizer((exit) => Effect.forkDetach(Scope.close(listenScope, exit)))
    const notices = yield* session.listen(channel).pipe(
      Scope.provide(listenScope),
      Effect.tapError(() => discard(session))
    )
    const inbox = yield* SubscriberQueue.make(DatabaseCommon.laggingError)
    yield* Stream.fromQueue(notices).pipe(
      Stream.runForEach(({ payload }) => Effect.sync(() => inbox.deliver(payload))),
      // The driver ends the queue with a failure or, when the heartbeat hung up, with an interruption.
      Effect.catchCause((cause) =>
        Effect.andThen(
          discard(session),
          Effect.sync(() => inbox.fail(noticesLost(cause)))
        )
      ),
      Effect.forkScoped
    )
    return inbox.messages
  })

  return { changes, ping }
})

/**
 * A session that only listens, so a peer that vanished without a word would look like quiet: it is asked, and hung up
 * on when it does not answer. Its followers then fail.
 */
const openSession = Effect.fnUntraced(function* (config: PgConnection.Config) {
  const sessionScope = yield* Effect.flatMap(Effect.scope, Scope.fork)
  const session = yield* PgConnection.make(config).pipe(
    Effect.flatMap((connection) => connection.pin),
    Scope.provide(sessionScope)
  )
  yield* withDeadline("1 second")(session.query("SELECT 1")).pipe(
    Effect.repeat(Schedule.spaced("2 seconds")),
    Effect.catch(() => Scope.close(sessionScope, Exit.void)),
    Effect.forkScoped
  )
  return session
})

const noticesLost = (cause: Cause.Cause<SqlError.SqlError>) =>
  new SqlError.SqlError({
    reason: new SqlError.ConnectionError({
      cause: Cause.squash(cause),
      message: "Change notices may have been lost: the session that listens is gone",
      operation: "changes"
    })
  })

const invalidUrl = new SqlError.SqlError({
  reason: new SqlError.ConnectionError({
    cause: new Error("not a URL"),
    message: "The database URL is not a URL",
    operation: "connect"
  })
})

export const layer = (options: Options): Layer.Layer<Database, SqlError.SqlError> =>
  Layer.effect(Database, make(options)).pipe(Layer.provide(Reactivity.layer))
