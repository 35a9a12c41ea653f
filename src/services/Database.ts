import { Context, Duration, type Effect, type Scope, type Stream } from "effect"
import type { SqlClient, SqlError } from "effect/sql"

/**
 * A migrated PostgreSQL, 14 or newer.
 *
 * Statements are written against `sql`; nothing else of the driver is visible. The embedded variant is the same
 * PostgreSQL inside the process, with one session: work there is serial, and what it holds ends with the process.
 *
 * Rows hold `bigint` (also `count(*)`) as bigint, `numeric` as text, `timestamptz` as Date, `bytea` as Uint8Array,
 * `jsonb` parsed, `uuid` as text, `text[]` as an array. The same go in as parameters, except JSON, which goes in as its
 * text: `${JSON.stringify(value)}`.
 */
export class Database extends Context.Service<
  Database,
  {
    readonly sql: SqlClient.SqlClient

    /**
     * Runs `work` in a transaction; again, up to 3 times in all, when that fails with the `SqlError` of a deadlock or a
     * serialisation failure. Nests as savepoints; then the outermost transaction is what runs again.
     */
    readonly transaction: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E | SqlError.SqlError, R>

    /**
     * Tells every process that follows `channel`. Inside `transaction` the notice leaves with the commit, and never
     * after a rollback. `payload`: at most 7,999 bytes. Equal notices of one transaction may arrive as one.
     */
    readonly notify: (channel: string, payload: string) => Effect.Effect<void, SqlError.SqlError>

    /**
     * Follows `channel`. The effect succeeds when the subscription is active, so "follow, then load" has no gap. The
     * stream fails when notices may have been lost: follow again, then load again.
     */
    readonly changes: (
      channel: string
    ) => Effect.Effect<Stream.Stream<string, SqlError.SqlError>, SqlError.SqlError, Scope.Scope>

    readonly ping: Effect.Effect<void, SqlError.SqlError>
  }
>()("svc/Database") {}

/**
 * How long a statement waits for a session, and then for its answer, before it fails with a connection error. Default:
 * for ever, because work that nobody waits for has deadlines of its own. Where somebody waits, set it: a server that
 * fell silent on an open connection never answers.
 */
export const StatementDeadline = Context.Reference<Duration.Duration>("svc/Database/StatementDeadline", {
  defaultValue: () => Duration.infinity
})
