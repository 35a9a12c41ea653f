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
  /** The maximum number of sessions for statements. Default: 10. Notices and pings use one more session. */
  readonly maxConnections?: number
  /** The `application_name` of the sessions. Default: "svc-runtime". */
  readonly name?: string
}

const make = Effect.fnUntraced(function* (options: Options) {
  // Check the URL here, because the driver's error message would contain the URL and its password.
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
 * Change notices and pings share one session outside the pool. The session is open while anything uses it. Pings do not
 * use the pool, because a busy pool does not mean that the server is down.
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
  // Every subscription calls this for a failed session. Later calls must not discard the new session.
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
    // Closing the scope sends UNLISTEN. This runs in the background, because a hanging server would never respond.
    yield* Effect.addFinalizer((exit) => Effect.forkDetach(Scope.close(listenScope, exit)))
    const notices = yield* session.listen(channel).pipe(
      Scope.provide(listenScope),
      Effect.tapError(() => discard(session))
    )
    const inbox = yield* SubscriberQueue.make(DatabaseCommon.laggingError)
    yield* Stream.fromQueue(notices).pipe(
      Stream.runForEach(({ payload }) => Effect.sync(() => inbox.deliver(payload))),
      // `notices` ends with a failure, or with an interruption if the heartbeat closed the session.
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
 * A session that only listens would not notice a hanging server. A heartbeat therefore queries the server every 2
 * seconds. If the server does not respond within 1 second, the session closes and all subscriptions fail.
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
      message: "The session that listens for change notices ended, so notices may have been lost",
      operation: "changes"
    })
  })

const invalidUrl = new SqlError.SqlError({
  reason: new SqlError.ConnectionError({
    cause: new Error("not a URL"),
    message: "The database URL is invalid",
    operation: "connect"
  })
})

export const layer = (options: Options): Layer.Layer<Database, SqlError.SqlError> =>
  Layer.effect(Database, make(options)).pipe(Layer.provide(Reactivity.layer))
