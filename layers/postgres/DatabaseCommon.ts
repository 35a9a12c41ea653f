import { Effect } from "effect"
import { type SqlClient, SqlError } from "effect/sql"
import type { Database } from "../../src/services/Database.ts"
import { withDeadline } from "./SqlDeadline.ts"

const maxAttempts = 3

/**
 * A deadlock or a serialization failure rolls back the outermost transaction, so only that one can be retried: at once,
 * and at most twice.
 */
export const transaction =
  (sql: SqlClient.SqlClient): Database["Service"]["transaction"] =>
  (work) =>
    Effect.flatMap(Effect.serviceOption(sql.transactionService), (enclosing) =>
      enclosing._tag === "Some"
        ? sql.withTransaction(work)
        : Effect.retry(sql.withTransaction(work), { times: maxAttempts - 1, while: isConflict })
    )

const isConflict = (error: unknown): boolean =>
  SqlError.isSqlError(error) && (error.reason._tag === "DeadlockError" || error.reason._tag === "SerializationError")

export const ping = (sql: SqlClient.SqlClient): Database["Service"]["ping"] =>
  Effect.asVoid(withDeadline("2 seconds")(sql`SELECT 1`))

/** LISTEN would silently truncate a longer name. */
export const checkedChannel = (name: string): Effect.Effect<string, SqlError.SqlError> => {
  const bytes = Buffer.byteLength(name)
  return bytes > 0 && bytes <= 63
    ? Effect.succeed(name)
    : Effect.fail(databaseError("changes", "A channel name must have 1 to 63 bytes"))
}

export const notify =
  (sql: SqlClient.SqlClient): Database["Service"]["notify"] =>
  (channel, payload) =>
    Effect.asVoid(sql`SELECT pg_notify(${channel}, ${payload})`)

/** The subscriber read so slowly that notices had to be dropped. */
export const laggingError = (): SqlError.SqlError =>
  databaseError("changes", "Change notices were lost: the follower was too slow")

const databaseError = (operation: string, message: string) =>
  new SqlError.SqlError({ reason: new SqlError.UnknownError({ cause: new Error(message), message, operation }) })
