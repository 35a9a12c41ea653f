import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../api/ControlApi.ts"
import { OperatorTokens } from "../OperatorTokens.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "operator-token",
  Effect.fn(function* (handlers) {
    const tokens = yield* OperatorTokens
    return handlers.handle("rotate", () => tokens.rotate)
  })
)
