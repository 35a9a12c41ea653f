import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../api/ControlApi.ts"
import { SeenModels } from "../providers/SeenModels.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "models",
  Effect.fn(function* (handlers) {
    const seen = yield* SeenModels
    return handlers.handleAll({ list: ({ query }) => seen.list(query) })
  })
)
