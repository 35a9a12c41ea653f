import { Context, type Effect } from "effect"
import { PrometheusMetrics } from "effect/observability"

/** The text of the metrics endpoint. By default these are the metrics of this process. */
export const MetricsPage = Context.Reference<Effect.Effect<string>>("svc/process/MetricsPage", {
  defaultValue: () => PrometheusMetrics.format()
})
