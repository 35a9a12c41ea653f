import { Effect, Metric, Option, SubscriptionRef } from "effect"
import { PrometheusMetrics } from "effect/observability"
import * as CallbackMetrics from "../../src/process/CallbackMetrics.ts"
import { Lifecycle } from "../../src/process/Lifecycle.ts"
import { restartReasons, type Slot } from "./Slot.ts"
import * as WorkersMetrics from "./WorkersMetrics.ts"
import * as WorkersReadiness from "./WorkersReadiness.ts"

/** Orchestrators may wait only a second for a probe. */
const readinessTimeout = "500 millis"
/** The series of a worker that is slower than this are missing from the page. */
const metricsTimeout = "1 second"

/** The readiness and the metrics of all workers. A worker that does not respond delays neither. */
export const make = Effect.fnUntraced(function* (slots: ReadonlyArray<Slot>) {
  const lifecycle = yield* Lifecycle
  yield* registerMetrics(slots)
  const readiness = Effect.gen(function* () {
    const workers = yield* Effect.forEach(slots, reportOf, { concurrency: "unbounded" })
    return WorkersReadiness.merge(yield* SubscriptionRef.get(lifecycle), workers)
  })
  const metrics = Effect.gen(function* () {
    const pages = yield* Effect.forEach(slots, pagesOf, { concurrency: "unbounded" })
    const own = { worker: undefined, text: yield* PrometheusMetrics.format() }
    return WorkersMetrics.merge([own, ...pages.flat()])
  })
  return { readiness, metrics }
})

const reportOf = Effect.fnUntraced(function* (slot: Slot) {
  const { current, number, state } = slot
  const report =
    current === undefined ? Option.none() : yield* Effect.timeoutOption(current.process.readiness, readinessTimeout)
  return { number, state, report }
})

/** A process that retires has a label of its own, because the one that replaces it has its number. */
const pagesOf = Effect.fnUntraced(function* (slot: Slot) {
  const { current, number, retiring } = slot
  const [page, retiringPage] = yield* Effect.all([pageOf(current?.process), pageOf(retiring)], { concurrency: 2 })
  slot.responds = Option.isSome(page)
  return [
    ...Option.toArray(page).map((text) => ({ worker: `${number}`, text })),
    ...Option.toArray(retiringPage).map((text) => ({ worker: `${number}-retiring`, text }))
  ]
})

const pageOf = (process: Slot["retiring"]): Effect.Effect<Option.Option<string>> =>
  process === undefined ? Effect.succeedNone : Effect.timeoutOption(process.metrics, metricsTimeout)

const registerMetrics = Effect.fnUntraced(function* (slots: ReadonlyArray<Slot>) {
  const metrics = yield* CallbackMetrics.make
  metrics.gauge(
    Metric.gauge("svc_workers_wanted", { description: "Processes that should share the proxy listener" }),
    () => slots.length
  )
  metrics.gauge(
    Metric.gauge("svc_workers_ready", { description: "Workers that serve and responded to this request for metrics" }),
    () => slots.filter(({ responds }) => responds).length
  )
  const restarts = Metric.counter("svc_worker_restarts_total", {
    description:
      "Processes that ended and were replaced, by reason: crash, silence (it was killed) or restart (SIGHUP)",
    incremental: true
  })
  for (const slot of slots) {
    for (const reason of restartReasons) {
      metrics.counter(
        Metric.withAttributes(restarts, { worker: `${slot.number}`, reason }),
        () => slot.restarts[reason]
      )
    }
  }
})
