import { Effect, Option, Redacted } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../api/ControlApi.ts"
import { ControlError } from "../api/Errors.ts"
import { Operator } from "../api/Security.ts"
import { openingPath, UpstreamUiOrigin } from "../UpstreamUiOrigin.ts"
import { UpstreamUiSessions } from "../UpstreamUiSessions.ts"

const unconfigured = new ControlError(
  "upstream_ui_unconfigured",
  "The upstream's UI has no address for browsers: set GATEWAY_UPSTREAM_UI_BIND_ADDR and start again."
)

export const layer = HttpApiBuilder.group(
  ControlApi,
  "upstream-ui",
  Effect.fn(function* (handlers) {
    const sessions = yield* UpstreamUiSessions
    const origin = yield* UpstreamUiOrigin
    return handlers.handle("open", () =>
      Effect.gen(function* () {
        if (Option.isNone(origin)) return yield* unconfigured
        const { tokenId } = yield* Operator
        if (tokenId === null) return yield* Effect.die("an operator over HTTP has a token")
        const { expiresAt, value } = yield* sessions.createCode(tokenId)
        return {
          url: Redacted.make(`${origin.value}${openingPath}?code=${Redacted.value(value)}`),
          expires_at: expiresAt
        }
      })
    )
  })
)
