import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../api/ControlApi.ts"
import { FrontDoor } from "../FrontDoor.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "front-door",
  Effect.fn(function* (handlers) {
    const frontDoor = yield* FrontDoor
    return handlers.handleAll({
      get: () => frontDoor.get,
      update: ({ payload }) => frontDoor.update(payload)
    })
  })
)
