import { Effect, Metric } from "effect"
import type { Outcome, Purpose } from "../../services/Broker.ts"

const published = Metric.counter("svc_messaging_publishes_total", {
  description:
    "Publishes by purpose (tasks, retries with dead letters, statuses) and by outcome: confirmed, returned, refused or unknown",
  incremental: true
})

const purposes: ReadonlyArray<Purpose> = ["tasks", "retries", "statuses"]
const outcomes: ReadonlyArray<Outcome["_tag"]> = ["Confirmed", "Returned", "Refused", "Unknown"]

/** Returns a plain function and not an effect, because it is called for every message. */
export const make: Effect.Effect<(purpose: Purpose, outcome: Outcome) => void> = Effect.map(
  Effect.context<never>(),
  (context) => {
    const counters = new Map(
      purposes.flatMap((purpose) =>
        outcomes.map((outcome) => [
          `${purpose} ${outcome}`,
          Metric.withAttributes(published, { purpose, outcome: outcome.toLowerCase() })
        ])
      )
    )
    return (purpose, { _tag }) => counters.get(`${purpose} ${_tag}`)?.updateUnsafe(1, context)
  }
)
