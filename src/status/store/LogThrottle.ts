import { Clock, Effect } from "effect"

const intervalMs = 60_000

/**
 * For a log line that senders or outages could have written without end: the first at once, then one a minute at most,
 * which is told how many were left out before it. The metrics count each.
 */
export const make: Effect.Effect<(log: (leftOut: string) => Effect.Effect<void>) => Effect.Effect<void>> = Effect.map(
  Clock.Clock,
  (clock) => {
    let loggedAt = Number.NEGATIVE_INFINITY
    let suppressedCount = 0
    return (log) =>
      Effect.suspend(() => {
        const now = clock.currentTimeMillisUnsafe()
        if (now - loggedAt < intervalMs) {
          suppressedCount++
          return Effect.void
        }
        const suppressed = suppressedCount === 0 ? "" : `, and ${suppressedCount} more since the last such line`
        loggedAt = now
        suppressedCount = 0
        return log(suppressed)
      })
  }
)
