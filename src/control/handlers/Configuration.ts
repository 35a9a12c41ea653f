import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../api/ControlApi.ts"
import { Configuration } from "../configuration/Configuration.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "configuration",
  Effect.fn(function* (handlers) {
    const configuration = yield* Configuration
    return handlers.handleAll({
      export: ({ query }) => configuration.export(query.omit ?? []),
      applied: () => configuration.applied,
      plan: ({ payload }) => configuration.plan(payload),
      apply: ({ payload }) => configuration.apply(payload.document, payload.base_hash)
    })
  })
)
