import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../../api/ControlApi.ts"
import { UpstreamPassthroughSettings } from "../../providers/UpstreamPassthroughSettings.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "upstream-passthrough",
  Effect.fn(function* (handlers) {
    const settings = yield* UpstreamPassthroughSettings
    return handlers.handleAll({
      get: () => settings.get,
      update: ({ payload }) => settings.update(payload)
    })
  })
)
