import { Effect, Metric } from "effect"

const events = Metric.counter("svc_status_hub_events_total", {
  description: "Messages of the status plane by outcome: stored, duplicate, malformed or left_out",
  incremental: true
})

const failures = Metric.counter("svc_status_hub_store_failures_total", {
  description: "Failed attempts to store an event",
  incremental: true
})

const boundariesMs = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 5_000, 30_000, 300_000, 3_600_000]
const description = "Time from an event's timestamp to its storage, measured with the clocks of two machines"
const lag = Metric.histogram("svc_status_hub_lag_seconds", {
  description,
  boundaries: boundariesMs.map((ms) => ms / 1000),
  attributes: { unit: "s" }
})
const lagMs = Metric.histogram("svc_status_hub_lag_ms", {
  description: `${description}, in milliseconds`,
  boundaries: boundariesMs
})

/** The counters are plain functions and not effects, because they are called for every message. */
export const make = Effect.map(Effect.context<never>(), (context) => {
  const counted = (outcome: string) => {
    const counter = Metric.withAttributes(events, { outcome })
    return () => counter.updateUnsafe(1, context)
  }
  // An alert on the first failure needs a value before it.
  failures.updateUnsafe(0, context)
  return {
    stored: counted("stored"),
    duplicate: counted("duplicate"),
    malformed: counted("malformed"),
    leftOut: counted("left_out"),
    storeFailed: () => failures.updateUnsafe(1, context),
    recordLag: (ms: number) => {
      lag.updateUnsafe(Math.max(ms, 0) / 1000, context)
      lagMs.updateUnsafe(Math.max(ms, 0), context)
    }
  }
})
