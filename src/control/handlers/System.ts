import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../api/ControlApi.ts"
import { ProcessDrains } from "../system/ProcessDrains.ts"
import { SystemFacts } from "../system/SystemFacts.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "system",
  Effect.fn(function* (handlers) {
    const { inventory, show } = yield* SystemFacts
    const { drain } = yield* ProcessDrains
    return handlers.handleAll({
      show: () => show,
      inventory: () => inventory,
      drain: ({ params, payload }) => drain(params.id, payload.reason)
    })
  })
)
