import { Context, Duration, type Effect, type Scope, type Stream } from "effect"
import type { SqlClient, SqlError } from "effect/sql"

/**
 * Access to PostgreSQL 14 or newer, with all migrations applied.
 *
 * The embedded variant runs PostgreSQL inside the process with a single session. It runs one statement at a time, and
 * its data is lost when the process ends.
 *
 * Rows hold `bigint` and `count(*)` as bigint, `numeric` as text, `timestamptz` as Date, `bytea` as Uint8Array, `jsonb`
 * parsed, `uuid` as text, `text[]` as an array. Parameters have the same types, except JSON. Pass JSON as text:
 * `${JSON.stringify(value)}`.
 */
export class Database extends Context.Service<
  Database,
  {
    readonly sql: SqlClient.SqlClient

    /**
     * Runs `work` in a transaction. Runs it again after a deadlock or a serialisation failure, at most 3 times in
     * total. A nested call is a savepoint. A retry then runs the outermost transaction again.
     */
    readonly transaction: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E | SqlError.SqlError, R>

    /**
     * Notifies every process that listens on `channel`. Inside `transaction`, a commit sends the notification and a
     * rollback drops it. `payload` has at most 7,999 bytes. Equal notifications of one transaction may arrive as one.
     */
    readonly notify: (channel: string, payload: string) => Effect.Effect<void, SqlError.SqlError>

    /**
     * Listens on `channel`. The effect succeeds once the subscription is active. Subscribe before you load data, so
     * that no change is missed. The stream fails when notifications may have been lost. Then subscribe and load again.
     */
    readonly changes: (
      channel: string
    ) => Effect.Effect<Stream.Stream<string, SqlError.SqlError>, SqlError.SqlError, Scope.Scope>

    readonly ping: Effect.Effect<void, SqlError.SqlError>
  }
>()("svc/Database") {}

/**
 * The time limit for a statement to get a session, and again to get its result. After it, the statement fails with a
 * connection error. Default: infinity, because background work has its own deadlines. Set a limit for the requests of
 * clients, because a server may stop responding on an open connection.
 */
export const StatementDeadline = Context.Reference<Duration.Duration>("svc/Database/StatementDeadline", {
  defaultValue: () => Duration.infinity
})
