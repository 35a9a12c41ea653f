import { Predicate } from "effect"
import { SqlError } from "effect/sql"

/** Returns PostgreSQL's five-character SQLSTATE, or an empty string if the error has none. */
const sqlStateOf = ({ reason: { cause } }: SqlError.SqlError): string =>
  Predicate.hasProperty(cause, "code") && Predicate.isString(cause.code) ? cause.code : ""

/** True if a parameter holds a text, number or date that PostgreSQL cannot store (class 22). */
export const isUnstorable = (error: SqlError.SqlError): boolean => sqlStateOf(error).startsWith("22")

/** True if the statement may succeed with other values: class 22 (data), 23 (constraint) or 54 (size or depth). */
export const isCausedByValues = (error: SqlError.SqlError): boolean => /^(?:22|23|54)/.test(sqlStateOf(error))

/**
 * True if the same statement may succeed later. The driver marks connection errors, conflicts and timeouts as
 * retryable. Other temporary states are read-only after a failover (25006), lack of disk, memory or sessions (53),
 * start or shutdown (57), and I/O errors (58).
 */
export const isTransient = (error: SqlError.SqlError): boolean =>
  error.isRetryable || /^(?:25006|53|57|58)/.test(sqlStateOf(error))

const commit = "commit"

/** Marks a connection error during COMMIT, so that `isCommitUnconfirmed` recognises it. */
export const asCommitFailure = (error: SqlError.SqlError): SqlError.SqlError =>
  error.reason._tag === "ConnectionError"
    ? new SqlError.SqlError({
        reason: new SqlError.ConnectionError({
          cause: error.reason.cause,
          message: `${error.reason.message ?? "The connection was lost"} during COMMIT: the transaction may or may not have been committed`,
          operation: commit
        })
      })
    : error

/** True if the connection was lost during COMMIT. The transaction may or may not have been committed. */
export const isCommitUnconfirmed = ({ reason }: SqlError.SqlError): boolean =>
  reason._tag === "ConnectionError" && reason.operation === commit
