import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../../api/ControlApi.ts"
import { Services } from "../../services/Services.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "services",
  Effect.fn(function* (handlers) {
    const services = yield* Services
    return handlers.handleAll({
      create: ({ payload }) => services.create(payload),
      list: () => services.list,
      get: ({ params }) => services.get(params.name),
      update: ({ params, payload }) => services.update(params.name, payload),
      remove: ({ params }) => services.remove(params.name),
      enable: ({ params }) => services.enable(params.name),
      disable: ({ params }) => services.disable(params.name)
    })
  })
)
