import { Context, Duration, Effect, Layer, Predicate, Schema } from "effect"
import { SqlError } from "effect/sql"
import * as ConcurrencyLimit from "../../services/ConcurrencyLimit.ts"
import { Database, StatementDeadline } from "../../services/Database.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { Operator } from "../api/schema/Security.ts"
import { computedRows, type StatementFailure } from "./Rows.ts"

const deadlineSeconds = 20

/** The limit is smaller than the connection pool, because the process may also run a gateway. */
const maxConcurrent = 3
/** The limit is smaller than `maxConcurrent`, so that one operator token cannot block the others. */
const maxConcurrentPerToken = 2
const maxWaitSeconds = 10

type QueryRefusal = Refused<"invalid_usage_query" | "store_unavailable">

/** The usage sums of a snapshot cover the time before these moments, in milliseconds since 1970. */
export interface SummedUsage {
  /** The end of the sums by the hour and by the day. */
  readonly until: number
  readonly minutesUntil: number
}

export class BoundedQueries extends Context.Service<
  BoundedQueries,
  {
    /**
     * Runs `read` in one snapshot with a deadline and without parallel workers, because the gateway uses the same
     * database. Limits the number of concurrent reads. The embedded database has no deadline.
     */
    readonly runBounded: <A, E>(
      read: (sums: SummedUsage) => Effect.Effect<A, E>
    ) => Effect.Effect<A, E | SqlError.SqlError | Schema.SchemaError | QueryRefusal, Operator>
  }
>()("svc/control/BoundedQueries") {
  static readonly layer = Layer.effect(
    BoundedQueries,
    Effect.gen(function* () {
      const { sql, transaction } = yield* Database
      const limit = yield* ConcurrencyLimit.make({
        maxTotal: maxConcurrent,
        maxPerCaller: maxConcurrentPerToken,
        maxWait: `${maxWaitSeconds} seconds`
      })

      const limited = <A, E>(query: Effect.Effect<A, E>) =>
        Effect.flatMap(Operator, ({ tokenId }) =>
          limit.acquire(tokenId ?? "").pipe(Effect.mapError(busy), Effect.andThen(query), Effect.scoped)
        )

      const runBounded: BoundedQueries["Service"]["runBounded"] = (read) =>
        inSnapshot(read).pipe(
          transaction,
          Effect.catchIf(isOverdue, () => Effect.fail(overdue)),
          // PostgreSQL's own timeout fires first, because its error tells the operator what to do.
          Effect.provideService(StatementDeadline, Duration.seconds(deadlineSeconds + 5)),
          limited
        )

      const inSnapshot = Effect.fnUntraced(function* <A, E>(read: (sums: SummedUsage) => Effect.Effect<A, E>) {
        yield* sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY`
        const { minutes_until, until } = yield* rollupRows.only(sql`
          SELECT until, minutes_until, set_config('statement_timeout', ${`${deadlineSeconds}s`}, true),
            set_config('jit', 'off', true), set_config('work_mem', '32MB', true),
            set_config('max_parallel_workers_per_gather', '0', true)
          FROM usage_rolled`)
        return yield* read({ until: until.getTime(), minutesUntil: minutes_until.getTime() })
      })

      return BoundedQueries.of({ runBounded })
    })
  )
}

const busy = ({ whose }: ConcurrencyLimit.ConcurrencyLimitReached): Refused<"store_unavailable"> =>
  new ControlError(
    "store_unavailable",
    whose === "caller"
      ? `${maxConcurrentPerToken} queries of this token are running, and none ended within ${maxWaitSeconds} seconds. Send fewer at once.`
      : `${maxConcurrent} usage queries are running, and none ended within ${maxWaitSeconds} seconds. Try again later.`
  )

const overdue = new ControlError(
  "invalid_usage_query",
  `The query took longer than ${deadlineSeconds} seconds. Choose a shorter range with from and to.`,
  { param: "from" }
)

/** PostgreSQL reports a statement timeout as SQLSTATE 57014. */
const isOverdue = <E>(error: E | StatementFailure): error is SqlError.SqlError =>
  SqlError.isSqlError(error) && Predicate.hasProperty(error.reason.cause, "code") && error.reason.cause.code === "57014"

const rollupRows = computedRows(Schema.Struct({ until: Schema.Date, minutes_until: Schema.Date }))
