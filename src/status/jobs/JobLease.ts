import { type Duration, Effect, Schedule, type Scope } from "effect"
import type { RedisError } from "../../services/Redis.ts"

/**
 * Succeeds when the lease of a job cannot be renewed: the job has ended or was paused, or another worker has taken the
 * lease. Renews the lease until then.
 */
export const untilLost = (take: Effect.Effect<boolean, RedisError>, leaseSeconds: number): Effect.Effect<void> =>
  take.pipe(
    Effect.retry(Schedule.spaced("1 second")),
    Effect.orDie,
    Effect.repeat({ schedule: Schedule.spaced(`${(leaseSeconds * 1_000) / 3} millis`), while: (mine) => mine }),
    Effect.asVoid
  )

/** A worker waits so long before it repeats a command that Redis has not executed. */
export const retrySchedule = Schedule.min([Schedule.exponential("200 millis"), Schedule.spaced("5 seconds")])

/** Looks for running jobs again and again, while the scope is open. `work` must end at some time. */
export const lookForJobs = <R>(
  work: Effect.Effect<void, RedisError, R>,
  { lookEvery, name }: { readonly lookEvery: Duration.Input; readonly name: string }
): Effect.Effect<void, never, R | Scope.Scope> =>
  Effect.asVoid(Effect.forkScoped(Effect.repeat(logged(work, name), Schedule.spaced(lookEvery))))

/** `name`: such as `replay job`. */
export const logged = <R>(work: Effect.Effect<void, RedisError, R>, name: string): Effect.Effect<void, never, R> =>
  work.pipe(
    Effect.catch((error) =>
      Effect.logWarning(`Redis is unavailable. Each ${name} waits until Redis is available again.`, error.message)
    ),
    Effect.catchDefect((defect) =>
      Effect.logError(`A ${name} failed unexpectedly. The worker retries the job.`, defect)
    )
  )
