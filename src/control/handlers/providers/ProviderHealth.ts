import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../../api/ControlApi.ts"
import { ProviderHealth } from "../../providers/ProviderHealth.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "provider-health",
  Effect.fn(function* (handlers) {
    const health = yield* ProviderHealth
    return handlers.handleAll({
      observed: ({ query }) => health.observed(query),
      states: () => health.states,
      put: ({ payload }) => health.put(payload),
      check: () => health.check
    })
  })
)
