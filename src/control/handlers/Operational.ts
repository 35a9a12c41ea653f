import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { PrometheusMetrics } from "effect/observability"
import { Readiness } from "../../process/Readiness.ts"
import { ControlApi, ProbesApi } from "../api/ControlApi.ts"

const answers = Effect.map(Readiness, (ready) => ({
  health: () => Effect.succeed({ status: "ok" as const }),
  readiness: () =>
    Effect.flatMap(ready, ({ checks, status }) =>
      status === "not_ready" ? Effect.fail({ status, checks }) : Effect.succeed({ status, checks })
    ),
  metrics: () => PrometheusMetrics.format()
}))

export const layer = HttpApiBuilder.group(
  ControlApi,
  "operational",
  Effect.fn(function* (handlers) {
    return handlers.handleAll(yield* answers)
  })
)

export const probes = HttpApiBuilder.group(
  ProbesApi,
  "operational",
  Effect.fn(function* (handlers) {
    return handlers.handleAll(yield* answers)
  })
)
