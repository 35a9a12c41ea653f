import { Effect } from "effect"
import { HttpApiBuilder, HttpApiSchema } from "effect/http-api"
import { ControlApi } from "../api/ControlApi.ts"
import { LimitRaises } from "../limits/LimitRaises.ts"
import { LimitResets } from "../limits/LimitResets.ts"
import { LimitStates } from "../limits/LimitStates.ts"
import { RaiseRequests } from "../limits/RaiseRequests.ts"
import { toPageResponse } from "./PageResponse.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "limits",
  Effect.fn(function* (handlers) {
    const states = yield* LimitStates
    const raises = yield* LimitRaises
    const resets = yield* LimitResets
    const requests = yield* RaiseRequests
    return handlers.handleAll({
      raise: ({ params, payload }) => raises.raise(params.key_id, payload),
      raises: ({ params, query }) => Effect.map(raises.list(params.key_id, query), toPageResponse),
      endRaise: ({ params }) => raises.end(params.key_id, params.id),
      reset: ({ payload }) => resets.reset(payload),
      raiseRequests: ({ query }) => Effect.map(requests.list(query), toPageResponse),
      grantRequest: ({ params, payload }) => requests.grant(params.id, payload),
      grantModel: ({ params, payload }) => requests.grantModel(params.id, payload),
      refuseRequest: ({ params, payload }) => requests.refuse(params.id, payload.answer),
      state: ({ query }) =>
        Effect.map(states.read(query), ({ next, page }) =>
          HttpApiSchema.withHeaders({ body: page, headers: next === undefined ? {} : { "x-next-cursor": next } })
        )
    })
  })
)
