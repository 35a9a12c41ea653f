import { Clock, Context, Effect, Exit, Metric } from "effect"

const duration = Metric.histogram("svc_messaging_handler_duration_seconds", {
  description: "Run time of message handlers, by queue and by outcome: succeeded, failed or interrupted",
  boundaries: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800],
  attributes: { unit: "s" }
})

const running = Metric.gauge("svc_messaging_handlers_running", {
  description: "Messages whose handler runs, by queue"
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

/** Gauges are cached like the series of durations, and as many queues have one of their own. */
const gauges = new Map<string, Metric.Gauge<number>>()

const gaugeOf = (queue: string): Metric.Gauge<number> => {
  const known = gauges.get(queue)
  if (known !== undefined) return known
  if (gauges.size >= maxSeries) return Metric.withAttributes(running, { queue: "other" })
  const made = Metric.withAttributes(running, { queue })
  gauges.set(queue, made)
  return made
}

export const timed = <A, E, R>(queue: string, handled: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.withFiber(({ context }) => {
    const clock = Context.get(context, Clock.Clock)
    const startedAt = clock.currentTimeNanosUnsafe()
    const gauge = gaugeOf(queue)
    gauge.modifyUnsafe(1, context)
    return Effect.onExit(handled, (exit) =>
      Effect.sync(() => {
        gauge.modifyUnsafe(-1, context)
        const seconds = Number(clock.currentTimeNanosUnsafe() - startedAt) / 1e9
        seriesOf(queue, outcomeOf(exit)).updateUnsafe(seconds, context)
      })
    )
  })
