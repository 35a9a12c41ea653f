import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../api/ControlApi.ts"
import { Usage } from "../Usage.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "usage",
  Effect.fn(function* (handlers) {
    const usage = yield* Usage
    return handlers.handleAll({
      events: ({ query }) => Effect.map(usage.events(query), ({ next, rows }) => ({ rows, next_cursor: next ?? null })),
      summary: ({ query }) => usage.summary(query)
    })
  })
)
