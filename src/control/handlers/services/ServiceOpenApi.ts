import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../../api/ControlApi.ts"
import { OpenApiSync } from "../../services/OpenApiSync.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "service-openapi",
  Effect.fn(function* (handlers) {
    const openApi = yield* OpenApiSync
    return handlers.handleAll({
      preview: ({ params, payload }) => openApi.preview(params.name, payload?.source_path),
      sync: ({ params, payload }) => openApi.sync(params.name, payload)
    })
  })
)
