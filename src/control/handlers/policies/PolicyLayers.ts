import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../../api/ControlApi.ts"
import { PolicyLayers } from "../../policies/PolicyLayers.ts"
import { toPageResponse } from "../PageResponse.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "policy-layers",
  Effect.fn(function* (handlers) {
    const layers = yield* PolicyLayers
    return handlers.handleAll({
      list: ({ query }) => Effect.map(layers.list(query), toPageResponse),
      get: ({ params }) => layers.get(params.id),
      upsert: ({ payload }) => layers.upsert(payload),
      update: ({ params, payload }) => layers.update(params.id, payload),
      remove: ({ params }) => layers.remove(params.id)
    })
  })
)
