import { Clock, Effect } from "effect"

/**
 * For log lines of which an outage would write one for each request: at most one a second for each cause.
 * `log` is told how many lines of its cause were left out before it, as a field.
 */
export type LogThrottle = (cause: string, log: (leftOut: SuppressedLines) => Effect.Effect<void>) => Effect.Effect<void>

export type SuppressedLines = { readonly left_out?: number }

const intervalMs = 1_000
/** Causes are few. Should they not be, what was left out of the oldest is forgotten. */
const maxCauses = 100

export const make: Effect.Effect<LogThrottle> = Effect.map(Clock.Clock, (clock) => {
  const causes = new Map<string, { readonly loggedAt: number; leftOut: number }>()
  const throttle: LogThrottle = (cause, log) =>
    Effect.suspend(() => {
      const now = clock.currentTimeMillisUnsafe()
      const last = causes.get(cause)
      if (last !== undefined && now - last.loggedAt < intervalMs) {
        last.leftOut++
        return Effect.void
      }
      if (last === undefined && causes.size >= maxCauses) {
        for (const oldest of causes.keys()) {
          causes.delete(oldest)
          break
        }
      }
      causes.set(cause, { loggedAt: now, leftOut: 0 })
      return log(last === undefined || last.leftOut === 0 ? {} : { left_out: last.leftOut })
    })
  return throttle
})
