import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../../api/ControlApi.ts"
import { BulkKeyChanges } from "../../keys/bulk/BulkKeyChanges.ts"
import { toPageResponse } from "../PageResponse.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "bulk-key-changes",
  Effect.fn(function* (handlers) {
    const changes = yield* BulkKeyChanges
    return handlers.handleAll({
      create: ({ payload }) => changes.create(payload),
      selection: ({ query }) => changes.count(query),
      list: ({ query }) => Effect.map(changes.list(query), toPageResponse),
      get: ({ params }) => changes.get(params.id),
      stop: ({ params }) => changes.stop(params.id),
      undo: ({ params }) => changes.undo(params.id)
    })
  })
)
