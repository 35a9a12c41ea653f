import { Effect } from "effect"
import { type SqlClient, SqlError } from "effect/sql"
import type { Database } from "../../src/services/Database.ts"
import { withDeadline } from "./SqlDeadline.ts"

const maxAttempts = 3

/**
 * Retries the outermost transaction at most twice after a deadlock or a serialization failure. These errors always roll
 * back the outermost transaction, so a nested one cannot be retried alone.
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

/** PostgreSQL would silently truncate a longer channel name. */
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

/** The error of a subscriber that read so slowly that notices were dropped. */
export const laggingError = (): SqlError.SqlError =>
  databaseError("changes", "Change notices were lost, because the subscriber was too slow")

const databaseError = (operation: string, message: string) =>
  new SqlError.SqlError({ reason: new SqlError.UnknownError({ cause: new Error(message), message, operation }) })
