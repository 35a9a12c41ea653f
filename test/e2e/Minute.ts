import { DateTime, Effect, Schedule } from "effect"

/** Minute windows are the calendar's: what began just before one ends would be counted in two. */
export const early = DateTime.now.pipe(
  Effect.map((now) => DateTime.toEpochMillis(now) % 60_000 < 40_000),
  Effect.repeat({ until: (early) => early, schedule: Schedule.spaced("100 millis") })
)
