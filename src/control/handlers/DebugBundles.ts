import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../api/ControlApi.ts"
import { DebugBundles } from "../usage/DebugBundles.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "debug-bundles",
  Effect.fn(function* (handlers) {
    const bundles = yield* DebugBundles
    return handlers.handle("get", ({ params }) => bundles.get(params.request_id))
  })
)
