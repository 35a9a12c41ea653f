import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../../api/ControlApi.ts"
import { CredentialMappings } from "../../keys/CredentialMappings.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "upstream-credentials",
  Effect.fn(function* (handlers) {
    const mappings = yield* CredentialMappings
    return handlers.handleAll({
      list: () => mappings.list,
      get: ({ params }) => mappings.get(params.id),
      upsert: ({ payload }) => mappings.upsert(payload),
      remove: ({ params }) => mappings.remove(params.id),
      enable: ({ params }) => mappings.enable(params.id),
      disable: ({ params }) => mappings.disable(params.id)
    })
  })
)
