import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../api/ControlApi.ts"
import { probeHandlers } from "../http/Probes.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "operational",
  Effect.fn(function* (handlers) {
    return handlers.handleAll(yield* probeHandlers)
  })
)
