import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../../api/ControlApi.ts"
import { Projects } from "../../keys/Projects.ts"
import { toPageResponse } from "../PageResponse.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "projects",
  Effect.fn(function* (handlers) {
    const projects = yield* Projects
    return handlers.handleAll({
      create: ({ payload }) => projects.create(payload),
      list: ({ query }) => Effect.map(projects.list(query), toPageResponse),
      get: ({ params }) => projects.get(params.id),
      update: ({ params, payload }) => projects.update(params.id, payload),
      remove: ({ params }) => projects.remove(params.id)
    })
  })
)
