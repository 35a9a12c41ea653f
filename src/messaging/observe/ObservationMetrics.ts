import { Effect, Metric } from "effect"
import type * as Observation from "./Observation.ts"
import type { ObservationSink } from "./ObservationSink.ts"

const observationsTotal = Metric.counter("svc_messaging_observations_total", {
  description:
    "Observations of consumers, by event and queue, such as received messages, failures, retries and dead letters",
  incremental: true
})

/** The maximum number of time series with a queue label. Later series have no queue label. */
const maxSeries = 1_000

/** Counts observations and passes them to `next`. Synchronous for speed, because it runs several times per message. */
export const countingSink = (next?: ObservationSink): Effect.Effect<ObservationSink> =>
  Effect.map(Effect.context<never>(), (context) => {
    const series = new Map<string, Metric.Counter<number>>()
    const counterOf = (observation: Observation.Observed): Metric.Counter<number> => {
      const queue = queueOf(observation)
      const name = `${observation.event_type} ${queue}`
      const known = series.get(name)
      if (known !== undefined) return known
      const labels = { event: observation.event_type, ...(series.size < maxSeries && { queue }) }
      const made = Metric.withAttributes(observationsTotal, labels)
      if (series.size < maxSeries) series.set(name, made)
      return made
    }
    return (observation) => {
      if (countedComponents.has(observation.component)) counterOf(observation).updateUnsafe(1, context)
      next?.(observation)
    }
  })

const countedComponents: ReadonlySet<string> = new Set<Observation.Observed["component"]>([
  "consumer",
  "aggregation",
  "workflow"
])

/** Returns the queue label of an observation. For a retry or a dead letter, it is the queue of the failed message. */
const queueOf = (observation: Observation.Observed): string =>
  ("source_queue_name" in observation && observation.source_queue_name) ||
  ("queue_name" in observation && observation.queue_name) ||
  ""
