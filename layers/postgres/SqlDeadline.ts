import { Cause, Duration, Effect, Fiber } from "effect"
import { SqlError } from "effect/sql"

/**
 * Fails if `statement` has no result within `deadline`, even in uninterruptible code such as finalizers. The statement
 * is then interrupted in the background. If the server does not respond, this takes the driver 5 more seconds.
 */
export const withDeadline =
  (deadline: Duration.Input) =>
  <A>(statement: Effect.Effect<A, SqlError.SqlError>): Effect.Effect<A, SqlError.SqlError> =>
    Effect.flatMap(Effect.forkDetach(statement), (running) => {
      const abandon = Effect.sync(() => running.interruptUnsafe())
      return Effect.interruptible(Fiber.join(running)).pipe(
        Effect.timeoutOrElse({
          duration: deadline,
          orElse: () => Effect.andThen(abandon, Effect.fail(timeoutError(deadline)))
        }),
        Effect.onInterrupt(() => abandon)
      )
    })

export const withInterruptibleDeadline =
  (deadline: Duration.Input) =>
  <A, R>(wait: Effect.Effect<A, SqlError.SqlError, R>): Effect.Effect<A, SqlError.SqlError, R> =>
    Effect.timeoutOrElse(wait, { duration: deadline, orElse: () => Effect.fail(timeoutError(deadline)) })

const timeoutError = (deadline: Duration.Input) => {
  const message = `The database did not respond within ${Duration.format(Duration.fromInputUnsafe(deadline))}`
  return new SqlError.SqlError({
    reason: new SqlError.ConnectionError({ cause: new Cause.TimeoutError(message), message, operation: "query" })
  })
}
