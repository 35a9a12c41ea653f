import { Clock, Effect } from "effect"

/**
 * Writes at most one log line per second and cause. Use it for lines that an outage would repeat with every request.
 * `log` receives the number of suppressed lines.
 */
export type LogThrottle = (
  cause: string,
  log: (suppressed: SuppressedLines) => Effect.Effect<void>
) => Effect.Effect<void>

export type SuppressedLines = { readonly left_out?: number }

/** The maximum number of remembered causes. A new cause replaces the oldest one and its count of suppressed lines. */
const maxCauses = 100

const makeEvery = (intervalMs: number) =>
  Effect.map(Clock.Clock, (clock) => {
    const causes = new Map<string, { readonly loggedAt: number; suppressed: number }>()
    return (cause: string, log: (suppressed: number) => Effect.Effect<void>): Effect.Effect<void> =>
      Effect.suspend(() => {
        const now = clock.currentTimeMillisUnsafe()
        const last = causes.get(cause)
        if (last !== undefined && now - last.loggedAt < intervalMs) {
          last.suppressed++
          return Effect.void
        }
        if (last === undefined && causes.size >= maxCauses) {
          for (const oldest of causes.keys()) {
            causes.delete(oldest)
            break
          }
        }
        causes.set(cause, { loggedAt: now, suppressed: 0 })
        return log(last?.suppressed ?? 0)
      })
  })

export const make: Effect.Effect<LogThrottle> = Effect.map(
  makeEvery(1_000),
  (throttle) => (cause, log) => throttle(cause, (suppressed) => log(suppressed === 0 ? {} : { left_out: suppressed }))
)

/** Logs the first call at once, then at most one call per minute with the number of suppressed calls. */
export const makePerMinute = Effect.map(
  makeEvery(60_000),
  (throttle) => (log: (suppressed: string) => Effect.Effect<void>) =>
    throttle("", (count) => log(count === 0 ? "" : `, and ${count} more since the last log line`))
)
