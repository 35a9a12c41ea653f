import { Effect } from "effect"
import { HttpApiBuilder, HttpApiSchema } from "effect/http-api"
import { ControlApi } from "../api/ControlApi.ts"
import { LimitStates } from "../limits/LimitStates.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "limits",
  Effect.fn(function* (handlers) {
    const states = yield* LimitStates
    return handlers.handleAll({
      state: ({ query }) =>
        Effect.map(states.read(query), ({ next, page }) =>
          HttpApiSchema.withHeaders({ body: page, headers: next === undefined ? {} : { "x-next-cursor": next } })
        )
    })
  })
)
