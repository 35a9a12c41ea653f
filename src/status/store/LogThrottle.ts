import { Clock, Effect } from "effect"

const intervalMs = 60_000

/** Logs the first call at once, then at most one a minute, with the number of suppressed calls. */
export const make: Effect.Effect<(log: (suppressed: string) => Effect.Effect<void>) => Effect.Effect<void>> =
  Effect.map(Clock.Clock, (clock) => {
    let loggedAt = Number.NEGATIVE_INFINITY
    let suppressedCount = 0
    return (log) =>
      Effect.suspend(() => {
        const now = clock.currentTimeMillisUnsafe()
        if (now - loggedAt < intervalMs) {
          suppressedCount++
          return Effect.void
        }
        const suppressed = suppressedCount === 0 ? "" : `, and ${suppressedCount} more since the last log line`
        loggedAt = now
        suppressedCount = 0
        return log(suppressed)
      })
  })
