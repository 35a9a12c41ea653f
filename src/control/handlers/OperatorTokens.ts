import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../api/ControlApi.ts"
import { Scope, scopeHelp } from "../api/schema/Security.ts"
import { OperatorSessions } from "../operators/OperatorSessions.ts"
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
      scopes: () => Effect.succeed(Scope.literals.map((scope) => ({ scope, help: scopeHelp[scope] }))),
      create: ({ payload }) => tokens.create(payload),
      get: ({ params }) => tokens.get(params.id),
      rotate: ({ params }) => tokens.rotate(params.id),
      revoke: ({ params }) => tokens.revoke(params.id)
    })
  })
)

export const sessions = HttpApiBuilder.group(
  ControlApi,
  "operator-sessions",
  Effect.fn(function* (handlers) {
    const all = yield* OperatorSessions
    return handlers.handleAll({
      list: ({ query }) => Effect.map(all.list(query), toPageResponse),
      end: ({ params }) => all.end(params.id)
    })
  })
)
