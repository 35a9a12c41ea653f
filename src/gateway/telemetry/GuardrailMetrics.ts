import { type Context, Metric } from "effect"
import type { RunReport } from "../../guardrails/Guardrails.ts"
import type { Execution } from "../../policy/Guardrail.ts"
import * as MetricLabel from "../../policy/routes/MetricLabel.ts"
import { boundaries } from "./RequestMetrics.ts"

/** The request or response that guardrails have inspected. */
export interface Inspected {
  readonly route: string
  readonly provider: string
  readonly stream: boolean
  readonly tookMs: number
}

export const record = (
  { executions, failures }: RunReport,
  { provider, route, stream, tookMs }: Inspected,
  context: Context.Context<never>
): void => {
  const durations = durationsOf(route, provider, stream)
  durations.seconds.updateUnsafe(tookMs / 1_000, context)
  durations.ms.updateUnsafe(tookMs, context)
  for (const execution of executions) {
    const counters = countersOf(execution)
    counters.runs.updateUnsafe(1, context)
    counters.latency.updateUnsafe(execution.latency_ms, context)
    if (failures.includes(execution)) counters.failures.updateUnsafe(1, context)
  }
}

const counter = (name: string, description: string) => Metric.counter(name, { description, incremental: true })
const runs = counter("gateway_guardrail_executions_total", "Runs of guardrails")
const failures = counter("gateway_guardrail_failures_total", "Runs in which the guardrail failed to decide")
const latency = counter("gateway_guardrail_latency_ms_total", "Total time of guardrail runs, in milliseconds")
const seconds = Metric.histogram("gateway_guardrail_duration_seconds", {
  description: "Time for all guardrails of a request, or of its response",
  boundaries: boundaries.map((ms) => ms / 1_000),
  attributes: { unit: "s" }
})
const ms = Metric.histogram("gateway_guardrail_duration_ms", {
  description: "Time for all guardrails of a request, or of its response, in milliseconds",
  boundaries
})

/** Series are cached, because creating one costs more than updating it. Their labels come from the configuration. */
const cached = <Series>() => {
  const known = new Map<string, Series>()
  return (labels: Readonly<Record<string, string>>, make: () => Series): Series => {
    const name = Object.values(labels).join(" ")
    const found = known.get(name)
    if (found !== undefined) return found
    const made = make()
    known.set(name, made)
    return made
  }
}

const knownDurations = cached<ReturnType<typeof durationSeries>>()
const knownCounters = cached<ReturnType<typeof counterSeries>>()

const durationsOf = (route: string, provider: string, stream: boolean) => {
  const labels = { route, provider, stream: String(stream) }
  return knownDurations(labels, () => durationSeries(labels))
}

const durationSeries = (labels: { readonly route: string }) => ({
  seconds: Metric.withAttributes(seconds, labels),
  ms: Metric.withAttributes(ms, { ...labels, route: MetricLabel.of(labels.route) })
})

const countersOf = ({ action, failure_policy, guardrail_name: guardrail, mode }: Execution) => {
  const labels = { guardrail, mode, action, failure_policy }
  return knownCounters(labels, () => counterSeries(labels))
}

const counterSeries = (labels: Readonly<Record<string, string>>) => ({
  runs: Metric.withAttributes(runs, labels),
  latency: Metric.withAttributes(latency, labels),
  failures: Metric.withAttributes(failures, labels)
})
