import { Clock, Effect, Exit, Metric } from "effect"

const duration = Metric.histogram("svc_messaging_handler_duration_seconds", {
  description: "Run time of message handlers, by queue and by outcome: succeeded, failed or interrupted",
  boundaries: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800],
  attributes: { unit: "s" }
})

/** The maximum number of time series. Further queues share the label value `other`. */
const maxSeries = 1_000
const series = new Map<string, Metric.Histogram<number>>()

/** Series are cached, because creating one costs more than updating it. */
const seriesOf = (queue: string, outcome: string): Metric.Histogram<number> => {
  const name = `${outcome} ${queue}`
  const known = series.get(name)
  if (known !== undefined) return known
  if (series.size >= maxSeries) return Metric.withAttributes(duration, { queue: "other", outcome })
  const made = Metric.withAttributes(duration, { queue, outcome })
  series.set(name, made)
  return made
}

const outcomeOf = (exit: Exit.Exit<unknown, unknown>) =>
  Exit.isSuccess(exit) ? "succeeded" : Exit.hasInterrupts(exit) ? "interrupted" : "failed"

export const timed = <A, E, R>(queue: string, handled: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Clock.Clock, (clock) => {
    const startedAt = clock.currentTimeNanosUnsafe()
    return Effect.onExit(handled, (exit) =>
      Metric.update(seriesOf(queue, outcomeOf(exit)), Number(clock.currentTimeNanosUnsafe() - startedAt) / 1e9)
    )
  })
