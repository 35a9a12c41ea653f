import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../../api/ControlApi.ts"
import { Studio } from "../../services/Studio.ts"
import { StudioConnection } from "../../services/StudioConnection.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "studio",
  Effect.fn(function* (handlers) {
    const connection = yield* StudioConnection
    const studio = yield* Studio
    return handlers.handleAll({
      connection: () => connection.get,
      connect: ({ payload }) => connection.update(payload),
      test: () => Effect.map(studio.services, ({ length }) => ({ ok: true, service_count: length }) as const),
      services: () => studio.services
    })
  })
)
