import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { PrometheusMetrics } from "effect/observability"
import type { Lifecycle } from "../../gateway/model/Lifecycle.ts"
import type { Database } from "../../services/Database.ts"
import type { Redis } from "../../services/Redis.ts"
import { ControlApi, ProbesApi } from "../api/ControlApi.ts"
import { ready } from "../Operations.ts"

const answers = Effect.map(Effect.context<Database | Redis | Lifecycle>(), (doors) => ({
  health: () => Effect.succeed({ status: "ok" as const }),
  readiness: () =>
    Effect.flatMap(Effect.provideContext(ready, doors), (isReady) =>
      isReady ? Effect.succeed({ status: "ready" as const }) : Effect.fail({ status: "not_ready" as const })
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
