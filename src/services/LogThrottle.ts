import { Clock, Effect } from "effect"

/**
 * Writes at most one log line per second and cause, for lines that an outage would repeat with every request. `log`
 * receives the number of suppressed lines as a field.
 */
export type LogThrottle = (
  cause: string,
  log: (suppressed: SuppressedLines) => Effect.Effect<void>
) => Effect.Effect<void>

export type SuppressedLines = { readonly left_out?: number }

const intervalMs = 1_000
/** Above this number of causes the oldest is forgotten, together with its count of suppressed lines. */
const maxCauses = 100

export const make: Effect.Effect<LogThrottle> = Effect.map(Clock.Clock, (clock) => {
  const causes = new Map<string, { readonly loggedAt: number; suppressed: number }>()
  const throttle: LogThrottle = (cause, log) =>
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
      return log(last === undefined || last.suppressed === 0 ? {} : { left_out: last.suppressed })
    })
  return throttle
})
