import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { AuthSettingsPatch } from "../api/AuthSettingsApi.ts"
import { ControlApi } from "../api/ControlApi.ts"
import { allows, Operator } from "../api/schema/Security.ts"
import { insufficientScope } from "../operators/Authentication.ts"
import { AuthSettings } from "../operators/AuthSettings.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "front-door",
  Effect.fn(function* (handlers) {
    const frontDoor = yield* AuthSettings
    return handlers.handleAll({
      get: () => frontDoor.get,
      update: ({ payload }) => Effect.andThen(requirePatchScopes(payload), frontDoor.update(payload))
    })
  })
)

/**
 * Whoever controls the trusted secret or the issuer can issue tokens for any caller, even on operator paths. Setting
 * these values therefore requires the scope `*`. Clearing them does not.
 */
const requirePatchScopes = Effect.fnUntraced(function* (patch: AuthSettingsPatch) {
  const trustedValues = [patch.trusted_gateway_header_secret, patch.issuer, patch.oidc_discovery_url]
  const { scopes } = yield* Operator
  if (trustedValues.some((value) => value !== undefined && value !== null) && !allows(scopes, []))
    return yield* insufficientScope([])
})
