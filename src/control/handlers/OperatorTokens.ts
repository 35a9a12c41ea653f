import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../api/ControlApi.ts"
import { OperatorTokens } from "../operators/OperatorTokens.ts"
import { toPageResponse } from "./PageResponse.ts"

export const ownToken = HttpApiBuilder.group(
  ControlApi,
  "operator-token",
  Effect.fn(function* (handlers) {
    const tokens = yield* OperatorTokens
    return handlers.handle("rotate", () => tokens.rotateOwn)
  })
)

export const allTokens = HttpApiBuilder.group(
  ControlApi,
  "operator-tokens",
  Effect.fn(function* (handlers) {
    const tokens = yield* OperatorTokens
    return handlers.handleAll({
      list: ({ query }) => Effect.map(tokens.list(query), toPageResponse),
      create: ({ payload }) => tokens.create(payload),
      get: ({ params }) => tokens.get(params.id),
      rotate: ({ params }) => tokens.rotate(params.id),
      revoke: ({ params }) => tokens.revoke(params.id)
    })
  })
)
