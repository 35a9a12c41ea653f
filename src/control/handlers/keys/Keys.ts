import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../../api/ControlApi.ts"
import type { KeyPatch, NewKey } from "../../api/keys/KeysApi.ts"
import { KeyCredentials } from "../../keys/KeyCredentials.ts"
import { Keys } from "../../keys/Keys.ts"
import { LimitStates } from "../../limits/LimitStates.ts"
import { requireAllScopes } from "../../operators/Authentication.ts"
import { toPageResponse } from "../PageResponse.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "keys",
  Effect.fn(function* (handlers) {
    const keys = yield* Keys
    const credentials = yield* KeyCredentials
    const limits = yield* LimitStates
    return handlers.handleAll({
      create: ({ payload }) => Effect.andThen(requireCreateScopes(payload), keys.create(payload)),
      list: ({ query: { near_limit, ...query } }) =>
        Effect.map(near_limit === "true" ? limits.keysNearLimit(query) : keys.list(query), toPageResponse),
      get: ({ params }) => keys.get(params.id),
      upstreamCredentials: ({ params }) => credentials.read(params.id),
      update: ({ params, payload }) => Effect.andThen(requirePatchScopes(payload), keys.update(params.id, payload)),
      rotate: ({ params, payload }) => keys.rotate(params.id, payload?.grace_seconds ?? 0),
      revoke: ({ params }) => keys.revoke(params.id),
      endGrace: ({ params }) => keys.endGrace(params.id),
      disable: ({ params }) => keys.disable(params.id),
      enable: ({ params }) => keys.enable(params.id)
    })
  })
)

/** Moving a key to another project also requires `keys:create`, because the key then uses that project's budget. */
const requirePatchScopes = ({ disabled, expected_updated_at: _, ...rest }: KeyPatch) => {
  const changesOwner = rest.owner_type !== undefined || rest.project_id !== undefined
  return requireAllScopes([
    ...(disabled === undefined ? [] : ["keys:disable" as const]),
    ...(Object.keys(rest).length === 0 ? [] : ["policies:update" as const]),
    ...(changesOwner ? ["keys:create" as const] : [])
  ])
}

/** Exempting a new key from guardrails requires the same scope as exempting an existing key. */
const requireCreateScopes = ({ guardrail_policy }: NewKey) => {
  const forbidden = guardrail_policy?.forbidden_guardrails ?? []
  const overridden = Object.keys(guardrail_policy?.guardrail_config_overrides ?? {})
  return requireAllScopes(forbidden.length + overridden.length === 0 ? [] : ["policies:update"])
}
