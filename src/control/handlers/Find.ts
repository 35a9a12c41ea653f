import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../api/ControlApi.ts"
import { Find } from "../find/Find.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "find",
  Effect.fn(function* (handlers) {
    const { find } = yield* Find
    return handlers.handle("find", ({ query }) => find(query.q.trim()))
  })
)
