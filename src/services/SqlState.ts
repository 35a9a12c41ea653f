import { Predicate } from "effect"
import { SqlError } from "effect/sql"

/** PostgreSQL's five characters for what went wrong, or nothing where it did not say. */
const sqlStateOf = ({ reason: { cause } }: SqlError.SqlError): string =>
  Predicate.hasProperty(cause, "code") && Predicate.isString(cause.code) ? cause.code : ""

/** The statement is right, and a value in it is not: a text, number or date that PostgreSQL cannot hold (class 22). */
export const isUnstorable = (error: SqlError.SqlError): boolean => sqlStateOf(error).startsWith("22")

/** The same statement would go through with other values: also a constraint (23), or a size or depth (54). */
export const isCausedByValues = (error: SqlError.SqlError): boolean => /^(?:22|23|54)/.test(sqlStateOf(error))

/**
 * The same statement may go through later. The driver knows that of connections, conflicts and deadlines; it is as true
 * of a server that only reads because another one took over (25006), lacks disk, memory or sessions (53), is going down
 * or coming up (57), or has a broken disk (58).
 */
export const isTransient = (error: SqlError.SqlError): boolean =>
  error.isRetryable || /^(?:25006|53|57|58)/.test(sqlStateOf(error))

const commit = "commit"

/** The failure of a COMMIT, which `isUnconfirmed` knows again. */
export const asCommitFailure = (error: SqlError.SqlError): SqlError.SqlError =>
  error.reason._tag === "ConnectionError"
    ? new SqlError.SqlError({
        reason: new SqlError.ConnectionError({
          cause: error.reason.cause,
          message: `${error.reason.message ?? "The connection was lost"}, when the transaction was to be committed: it may have been`,
          operation: commit
        })
      })
    : error

/** The database did not say whether it committed the transaction. */
export const isCommitUnconfirmed = ({ reason }: SqlError.SqlError): boolean =>
  reason._tag === "ConnectionError" && reason.operation === commit
