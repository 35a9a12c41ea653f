import { Cause, Duration, Effect, Fiber } from "effect"
import { SqlError } from "effect/sql"

/**
 * Fails when `statement` has no answer within `deadline`, also where nothing can be interrupted (the control of a
 * transaction, a finalizer). On a silent server the driver takes 5 seconds more to give a statement up: that is left
 * behind, and ends with its session at the latest.
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

/** As `within`, for a wait that can be interrupted where it runs. */
export const withInterruptibleDeadline =
  (deadline: Duration.Input) =>
  <A, R>(wait: Effect.Effect<A, SqlError.SqlError, R>): Effect.Effect<A, SqlError.SqlError, R> =>
    Effect.timeoutOrElse(wait, { duration: deadline, orElse: () => Effect.fail(timeoutError(deadline)) })

const timeoutError = (deadline: Duration.Input) => {
  const message = `The database did not answer within ${Duration.format(Duration.fromInputUnsafe(deadline))}`
  return new SqlError.SqlError({
    reason: new SqlError.ConnectionError({ cause: new Cause.TimeoutError(message), message, operation: "query" })
  })
}
