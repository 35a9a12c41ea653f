import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../../api/ControlApi.ts"
import type { KeyPatch, NewKey } from "../../api/keys/KeysApi.ts"
import { allows, Operator, type Scope } from "../../api/schema/Security.ts"
import { Keys } from "../../keys/Keys.ts"
import { insufficientScope } from "../../operators/Authentication.ts"
import { toPageResponse } from "../PageResponse.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "keys",
  Effect.fn(function* (handlers) {
    const keys = yield* Keys
    return handlers.handleAll({
      create: ({ payload }) => Effect.andThen(requireCreateScopes(payload), keys.create(payload)),
      list: ({ query }) => Effect.map(keys.list(query), toPageResponse),
      get: ({ params }) => keys.get(params.id),
      update: ({ params, payload }) => Effect.andThen(requirePatchScopes(payload), keys.update(params.id, payload)),
      rotate: ({ params, payload }) => keys.rotate(params.id, payload?.grace_seconds ?? 0),
      revoke: ({ params }) => keys.revoke(params.id),
      disable: ({ params }) => keys.disable(params.id),
      enable: ({ params }) => keys.enable(params.id)
    })
  })
)

/**
 * A switch needs `keys:disable`, anything else `policies:update`. A key in another project spends that project's money
 * with its credentials, as a new key there would: that takes `keys:create`, too.
 */
const requirePatchScopes = ({ disabled, ...rest }: KeyPatch) => {
  const moves = rest.owner_type !== undefined || rest.project_id !== undefined
  return requireAllScopes([
    ...(disabled === undefined ? [] : ["keys:disable" as const]),
    ...(Object.keys(rest).length === 0 ? [] : ["policies:update" as const]),
    ...(moves ? ["keys:create" as const] : [])
  ])
}

/** Guardrails that are on for everybody hold for a new key, unless its maker could lift them for an old one. */
const requireCreateScopes = ({ guardrail_policy }: NewKey) => {
  const forbidden = guardrail_policy?.forbidden_guardrails ?? []
  const overridden = Object.keys(guardrail_policy?.guardrail_config_overrides ?? {})
  return requireAllScopes(forbidden.length + overridden.length === 0 ? [] : ["policies:update"])
}

/** Every one of the scopes. */
const requireAllScopes = Effect.fnUntraced(function* (needed: ReadonlyArray<Scope>) {
  const { scopes } = yield* Operator
  const lacked = needed.filter((scope) => !allows(scopes, [scope]))
  if (lacked.length > 0) return yield* insufficientScope(lacked)
})
