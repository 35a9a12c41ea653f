import { Context, Duration, type Effect, type Scope, type Stream } from "effect"
import type { SqlClient, SqlError } from "effect/sql"

/**
 * The door to PostgreSQL 14 or newer, with all migrations applied.
 *
 * Statements are written against `sql`; the rest of the driver is not visible. The embedded variant is PostgreSQL
 * inside the process with a single session: statements run one after the other, and the data ends with the process.
 *
 * Rows hold `bigint` (also `count(*)`) as bigint, `numeric` as text, `timestamptz` as Date, `bytea` as Uint8Array,
 * `jsonb` parsed, `uuid` as text, `text[]` as an array. Parameters take the same types, except JSON, which is passed as
 * text: `${JSON.stringify(value)}`.
 */
export class Database extends Context.Service<
  Database,
  {
    readonly sql: SqlClient.SqlClient

    /**
     * Runs `work` in a transaction. A deadlock or a serialisation failure runs it again, up to 3 times in all. Nested
     * calls are savepoints; a retry then runs the outermost transaction again.
     */
    readonly transaction: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E | SqlError.SqlError, R>

    /**
     * Notifies every process that follows `channel`. Inside `transaction` the notice is sent on commit and dropped on
     * rollback. `payload` has at most 7,999 bytes. Equal notices of one transaction may arrive as one.
     */
    readonly notify: (channel: string, payload: string) => Effect.Effect<void, SqlError.SqlError>

    /**
     * Follows `channel`. The effect succeeds once the subscription is active, so following before loading leaves no
     * gap. The stream fails when notices may have been lost: follow again, then load again.
     */
    readonly changes: (
      channel: string
    ) => Effect.Effect<Stream.Stream<string, SqlError.SqlError>, SqlError.SqlError, Scope.Scope>

    readonly ping: Effect.Effect<void, SqlError.SqlError>
  }
>()("svc/Database") {}

/**
 * The time that a statement waits for a session, and then for its result, before it fails with a connection error.
 * Default: infinity, because background work has its own deadlines. Set it where a client waits: a server that fell
 * silent on an open connection never responds.
 */
export const StatementDeadline = Context.Reference<Duration.Duration>("svc/Database/StatementDeadline", {
  defaultValue: () => Duration.infinity
})
