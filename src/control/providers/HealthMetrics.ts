import { Effect, Metric } from "effect"
import * as MetricLabel from "../../policy/routes/MetricLabel.ts"
import type { HealthState } from "../api/providers/ProviderHealthApi.ts"

const transitions = Metric.counter("gateway_circuit_transitions_total", {
  description: "Changes of a circuit's recorded state",
  incremental: true
})
const circuitStates = Metric.gauge("gateway_circuit_breaker_state", {
  description: "1 for the circuit state last recorded by this process, 0 for the other states"
})

/** The maximum number of circuits whose state is exported. State changes of further circuits are still counted. */
const maxCircuitSeries = 1000

const states: ReadonlyArray<HealthState["circuit_state"]> = ["closed", "open", "half_open"]

interface StateChange {
  readonly before: HealthState | null
  readonly after: HealthState
}

/** Returns a function that updates the metrics for a recorded state. Call this once per process. */
export const make = () => {
  const reported = new Set<string>()
  return Effect.fnUntraced(function* ({ after, before }: StateChange) {
    const { circuit_state, name, provider } = after
    if ((before?.circuit_state ?? "closed") !== circuit_state) yield* Metric.update(transitions, 1)
    const circuit = `${provider}/${name}`
    if (!reported.has(circuit) && reported.size >= maxCircuitSeries) return
    reported.add(circuit)
    for (const state of states) {
      const attributes = { provider, name: MetricLabel.of(name), state }
      yield* Metric.update(Metric.withAttributes(circuitStates, attributes), state === circuit_state ? 1 : 0)
    }
  })
}
