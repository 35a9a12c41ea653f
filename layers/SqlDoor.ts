import { Cause, type Duration, Effect, Fiber } from "effect"
import { type SqlClient, SqlError } from "effect/sql"
import type { Database } from "../src/services/Database.ts"

const attempts = 3

/**
 * A transaction that a deadlock or a serialisation failure rolled back runs again, at once: whoever won is through.
 * Only the outermost level can, because the failure takes every level below it.
 */
export const transaction =
  (sql: SqlClient.SqlClient): Database["Service"]["transaction"] =>
  (work) =>
    Effect.flatMap(Effect.serviceOption(sql.transactionService), (enclosing) =>
      enclosing._tag === "Some"
        ? sql.withTransaction(work)
        : Effect.retry(sql.withTransaction(work), { times: attempts - 1, while: isConflict })
    )

const isConflict = (error: unknown): boolean =>
  SqlError.isSqlError(error) && (error.reason._tag === "DeadlockError" || error.reason._tag === "SerializationError")

/**
 * Answers within `deadline`, whatever state the session is in. The driver takes seconds to give up a statement on a
 * silent server, so what is late is left behind in `scope` instead of being waited for.
 */
export const answers = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, deadline: Duration.Input) {
  const scope = yield* Effect.scope
  return Effect.gen(function* () {
    const question = yield* Effect.forkIn(sql`SELECT 1`, scope)
    const leave = Effect.sync(() => question.interruptUnsafe())
    yield* Fiber.join(question).pipe(
      Effect.timeoutOrElse({ duration: deadline, orElse: () => Effect.fail(silent) }),
      Effect.onError(() => leave)
    )
  })
})

const silent = new SqlError.SqlError({
  reason: new SqlError.ConnectionError({
    cause: new Cause.TimeoutError("no answer before the deadline"),
    message: "The database did not answer in time",
    operation: "ping"
  })
})

export const notify =
  (sql: SqlClient.SqlClient): Database["Service"]["notify"] =>
  (channel, payload) =>
    Effect.asVoid(sql`SELECT pg_notify(${channel}, ${payload})`)

/** The follower did not read for so long that notices had to be dropped. */
export const lagging = (): SqlError.SqlError =>
  new SqlError.SqlError({
    reason: new SqlError.UnknownError({
      cause: new Error("A follower was too slow"),
      message: "Change notices were lost: the follower was too slow",
      operation: "changes"
    })
  })
