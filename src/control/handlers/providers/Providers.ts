import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../../api/ControlApi.ts"
import { Providers } from "../../providers/Providers.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "providers",
  Effect.fn(function* (handlers) {
    const providers = yield* Providers
    return handlers.handleAll({
      create: ({ payload }) => providers.create(payload),
      list: () => providers.list,
      get: ({ params }) => providers.get(params.id),
      update: ({ params, payload }) => providers.update(params.id, payload),
      remove: ({ params }) => providers.remove(params.id),
      enable: ({ params }) => providers.enable(params.id),
      disable: ({ params }) => providers.disable(params.id)
    })
  })
)
