import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../api/ControlApi.ts"
import type { FrontDoorPatch } from "../api/FrontDoorApi.ts"
import { allows, Operator } from "../api/schema/Security.ts"
import { lacking } from "../operators/Authentication.ts"
import { FrontDoor } from "../operators/FrontDoor.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "front-door",
  Effect.fn(function* (handlers) {
    const frontDoor = yield* FrontDoor
    return handlers.handleAll({
      get: () => frontDoor.get,
      update: ({ payload }) => Effect.andThen(permitted(payload), frontDoor.update(payload))
    })
  })
)

/**
 * Whoever says which secret or which issuer is believed can be anybody, also those that paths for operators let in: that
 * takes a token that may do everything. Forgetting them takes no more than the other settings do.
 */
const permitted = Effect.fnUntraced(function* (patch: FrontDoorPatch) {
  const believed = [patch.trusted_gateway_header_secret, patch.issuer, patch.oidc_discovery_url]
  const { scopes } = yield* Operator
  if (believed.some((value) => value !== undefined && value !== null) && !allows(scopes, [])) return yield* lacking([])
})
