import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi, PortalApi } from "../api/ControlApi.ts"
import { probeHandlers } from "../http/Probes.ts"

export const probes = HttpApiBuilder.group(
  PortalApi,
  "probes",
  Effect.fn(function* (handlers) {
    const { health, readiness } = yield* probeHandlers
    return handlers.handleAll({ health, readiness })
  })
)

export const layer = HttpApiBuilder.group(
  ControlApi,
  "operational",
  Effect.fn(function* (handlers) {
    return handlers.handleAll(yield* probeHandlers)
  })
)
