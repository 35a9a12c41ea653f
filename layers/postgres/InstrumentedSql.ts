import { makeCompiler } from "@effect/sql-pg/PgClient"
import type { PgConnection } from "@effect/sql-pg/PgConnection"
import type { PgPool } from "@effect/sql-pg/PgPool"
import { Duration, Effect, Metric, Predicate, Stream } from "effect"
import type { Reactivity } from "effect/reactivity"
import { SqlClient, type SqlConnection, SqlError } from "effect/sql"
import { StatementDeadline } from "../../src/services/Database.ts"
import * as SqlState from "../../src/services/SqlState.ts"
import { withDeadline, withInterruptibleDeadline } from "./SqlDeadline.ts"

export const statements = Metric.counter("svc_database_statements_total", {
  description: "Statements sent to the database",
  incremental: true
})

const spanAttributes = [["db.system.name", "postgresql"]] as const

/**
 * Builds a `SqlClient` like `PgClient`, with two differences. It counts statements. A transaction that loses its
 * session fails with an error. `PgClient` dies in this case, because the ROLLBACK fails, too.
 */
export const make = Effect.fnUntraced(function* (
  pool: PgPool
): Effect.fn.Return<SqlClient.SqlClient, never, Reactivity.Reactivity> {
  const acquirer = Effect.map(
    withStatementDeadline((deadline) => withInterruptibleDeadline(deadline)(pool.reserve), pool.reserve),
    instrumented
  )
  const client = yield* SqlClient.make({
    acquirer,
    compiler: makeCompiler(),
    driver: "pg",
    prepareTransactionControls: true,
    spanAttributes
  })
  const withTransaction = SqlClient.makeWithTransaction<SqlClient.TransactionConnection, SqlConnection.Connection>({
    transactionService: client.transactionService,
    spanAttributes,
    acquireConnection: (restore) => restore(acquirer),
    begin: (connection, statement) =>
      statement === undefined
        ? executeControl(connection, "BEGIN")
        : withControlDeadline(connection.executeUnprepared(statement, [], undefined)),
    commit,
    savepoint: (connection, id) => executeControl(connection, `SAVEPOINT svc_${id}`),
    rollback: (connection) => Effect.ignore(executeControl(connection, "ROLLBACK")),
    rollbackSavepoint: (connection, id) => Effect.ignore(executeControl(connection, `ROLLBACK TO SAVEPOINT svc_${id}`)),
    releaseSavepoint: (connection, id) => Effect.ignore(executeControl(connection, `RELEASE SAVEPOINT svc_${id}`))
  })
  return Object.assign(client, { withTransaction })
})

/** BEGIN, COMMIT and ROLLBACK cannot be interrupted, so they need a timeout. A COMMIT may take seconds. */
const withControlDeadline = withDeadline("10 seconds")

const executeControl = (
  connection: SqlConnection.Connection,
  statement: string
): Effect.Effect<void, SqlError.SqlError> => withControlDeadline(connection.execute(statement, [], undefined))

/**
 * PostgreSQL answers the COMMIT of an aborted transaction without an error, but with the tag ROLLBACK. If the session
 * is lost, the outcome is unknown, and `SqlState.isUnconfirmed` is true for the error.
 */
const commit = (connection: SqlConnection.Connection): Effect.Effect<void, SqlError.SqlError> =>
  Effect.flatMap(
    Effect.mapError(withControlDeadline(connection.executeRaw("COMMIT", [])), SqlState.asCommitFailure),
    (result) =>
      Predicate.hasProperty(result, "command") && result.command === "COMMIT"
        ? Effect.void
        : Effect.fail(
            new SqlError.SqlError({
              reason: new SqlError.UnknownError({
                cause: new Error("An earlier statement failed, so COMMIT rolled the transaction back"),
                message: "COMMIT rolled back an aborted transaction",
                operation: "commit"
              })
            })
          )
  )

const withStatementDeadline = <A, R>(
  bounded: (deadline: Duration.Duration) => Effect.Effect<A, SqlError.SqlError, R>,
  unbounded: Effect.Effect<A, SqlError.SqlError, R>
): Effect.Effect<A, SqlError.SqlError, R> =>
  Effect.flatMap(StatementDeadline, (deadline) => (Duration.isFinite(deadline) ? bounded(deadline) : unbounded))

const instrumented = (session: PgConnection): SqlConnection.Connection => {
  const send = <A>(statement: Effect.Effect<A, SqlError.SqlError>) =>
    Effect.mapError(Effect.andThen(Metric.update(statements, 1), statement), asConnectionLoss)
  const sendInTime = <A>(statement: Effect.Effect<A, SqlError.SqlError>) =>
    send(withStatementDeadline((deadline) => withDeadline(deadline)(statement), statement))
  const rows = (sql: string, params: ReadonlyArray<unknown>, prepare: boolean) =>
    sendInTime(Effect.map(session.query(sql, params, prepare), (result) => result.rows))
  return {
    execute: (sql, params, transform) => applyTransform(rows(sql, params, true), transform),
    executeUnprepared: (sql, params, transform) => applyTransform(rows(sql, params, false), transform),
    executeRaw: (sql, params) => sendInTime(session.query(sql, params)),
    executeValues: (sql, params) => sendInTime(session.queryValues(sql, params)),
    executeValuesUnprepared: (sql, params) => sendInTime(session.queryValues(sql, params, false)),
    executeStream: (sql, params, transform) => {
      const results = Stream.unwrap(send(Effect.sync(() => session.stream(sql, params))))
      const stream = Stream.mapError(results, asConnectionLoss)
      return transform === undefined
        ? stream
        : Stream.flatMap(Stream.chunks(stream), (c) => Stream.fromIterable(transform(c)))
    }
  }
}

const applyTransform = <A extends object>(
  rows: Effect.Effect<ReadonlyArray<A>, SqlError.SqlError>,
  transform: ((rows: ReadonlyArray<A>) => ReadonlyArray<A>) | undefined
) => (transform === undefined ? rows : Effect.map(rows, transform))

/** Errors with SQLSTATE 57P0x, such as a server shutdown, end the session and become connection errors. */
const asConnectionLoss = (error: SqlError.SqlError): SqlError.SqlError => {
  const { cause, message, operation } = error.reason
  return error.reason._tag === "UnknownError" &&
    Predicate.hasProperty(cause, "code") &&
    Predicate.isString(cause.code) &&
    cause.code.startsWith("57P0")
    ? new SqlError.SqlError({ reason: new SqlError.ConnectionError({ cause, message, operation }) })
    : error
}
