import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../../api/ControlApi.ts"
import { UpstreamUiLinks } from "../../upstream-ui/UpstreamUiLinks.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "upstream-ui",
  Effect.fn(function* (handlers) {
    const links = yield* UpstreamUiLinks
    return handlers.handle("open", () => links.open)
  })
)
