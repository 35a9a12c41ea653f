import { readdirSync } from "node:fs"
import { monitorEventLoopDelay, performance } from "node:perf_hooks"
import { Effect, Layer, Metric } from "effect"
import * as CallbackMetrics from "../src/process/CallbackMetrics.ts"
import type { Role } from "./DoorOptions.ts"
import { version } from "./telemetry/Version.ts"

const resolutionMs = 20
/** The event-loop metrics cover about the last minute. */
const windowMs = 60_000
const openFiles = "/proc/self/fd"

const gauge = (name: string, description: string, unit?: string) =>
  Metric.gauge(name, { description, ...(unit === undefined ? {} : { attributes: { unit } }) })

/** The metric names are those of Prometheus' client libraries. */
export const layer = (role: Role) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const metrics = yield* CallbackMetrics.make
      metrics.gauge(
        Metric.gauge("svc_build_info", {
          description: "Always 1; the labels are the version, the role and the version of Node",
          attributes: { version, role, node: process.versions.node }
        }),
        () => 1
      )
      metrics.counter(
        Metric.counter("process_cpu_seconds_total", {
          description: "Processor time of this process, in seconds",
          incremental: true,
          attributes: { unit: "s" }
        }),
        () => {
          const { system, user } = process.cpuUsage()
          return (system + user) / 1e6
        }
      )
      metrics.gauge(
        gauge("process_start_time_seconds", "When this process started, in seconds since 1970", "s"),
        () => performance.timeOrigin / 1000
      )
      metrics.gauge(gauge("process_resident_memory_bytes", "Resident memory of this process", "By"), () =>
        process.memoryUsage.rss()
      )
      metrics.gauge(
        gauge("nodejs_heap_size_used_bytes", "Heap memory that JavaScript objects use", "By"),
        () => process.memoryUsage().heapUsed
      )
      metrics.gauge(
        gauge("nodejs_external_memory_bytes", "Memory outside the heap that JavaScript objects use", "By"),
        () => process.memoryUsage().external
      )
      if (countOpenFiles() !== undefined) {
        metrics.gauge(gauge("process_open_fds", "Open files and connections"), () => countOpenFiles() ?? 0)
      }
      yield* registerEventLoopLag(metrics)
    })
  )

const registerEventLoopLag = Effect.fnUntraced(function* (metrics: CallbackMetrics.CallbackMetrics) {
  const delays = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const delays = monitorEventLoopDelay({ resolution: resolutionMs })
      delays.enable()
      return delays
    }),
    (delays) => Effect.sync(() => delays.disable())
  )
  let windowStartedAt = performance.now()
  /** The histogram contains the time between two runs of a timer. The lag is this time minus the timer's interval. */
  const readLag = (read: () => number) => () => {
    const seconds = Math.max(0, read() / 1e9 - resolutionMs / 1000) || 0
    if (performance.now() - windowStartedAt > windowMs) {
      windowStartedAt = performance.now()
      // Reset later, because other gauges of the same scrape still read the histogram.
      setImmediate(() => delays.reset())
    }
    return seconds
  }
  const lagGauge = (name: string, statistic: string) =>
    gauge(
      `nodejs_eventloop_lag_${name}_seconds`,
      `Delay of the event loop over about the last minute: ${statistic}`,
      "s"
    )
  metrics.gauge(
    lagGauge("p50", "median"),
    readLag(() => delays.percentile(50))
  )
  metrics.gauge(
    lagGauge("p99", "99th percentile"),
    readLag(() => delays.percentile(99))
  )
  metrics.gauge(
    lagGauge("max", "maximum"),
    readLag(() => delays.max)
  )
})

/** Returns `undefined` if the system has no `/proc`. */
const countOpenFiles = (): number | undefined => {
  try {
    return readdirSync(openFiles).length
  } catch {
    return undefined
  }
}
