import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../api/ControlApi.ts"
import { SystemFacts } from "../system/SystemFacts.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "system",
  Effect.fn(function* (handlers) {
    const { show } = yield* SystemFacts
    return handlers.handleAll({ show: () => show })
  })
)
