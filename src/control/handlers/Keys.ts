import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { lacking } from "../Authentication.ts"
import { ControlApi } from "../api/ControlApi.ts"
import type { KeyPatch } from "../api/KeysApi.ts"
import { allows, Operator, type Scope } from "../api/Security.ts"
import { Keys } from "../Keys.ts"
import { paged } from "./Paged.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "keys",
  Effect.fn(function* (handlers) {
    const keys = yield* Keys
    return handlers.handleAll({
      create: ({ payload }) => keys.create(payload),
      list: ({ query }) => Effect.map(keys.list(query), paged),
      get: ({ params }) => keys.get(params.id),
      update: ({ params, payload }) => Effect.andThen(permitted(payload), keys.update(params.id, payload)),
      rotate: ({ params, payload }) => keys.rotate(params.id, payload?.grace_seconds ?? 0),
      revoke: ({ params }) => keys.revoke(params.id),
      disable: ({ params }) => keys.disable(params.id),
      enable: ({ params }) => keys.enable(params.id)
    })
  })
)

/** A switch needs `keys:disable`, anything else `policies:update`; a patch that does both needs both. */
const permitted = Effect.fnUntraced(function* ({ disabled, ...rest }: KeyPatch) {
  const { scopes } = yield* Operator
  const needed: ReadonlyArray<Scope> = [
    ...(disabled === undefined ? [] : ["keys:disable" as const]),
    ...(Object.keys(rest).length === 0 ? [] : ["policies:update" as const])
  ]
  const lacked = needed.filter((scope) => !allows(scopes, [scope]))
  if (lacked.length > 0) return yield* lacking(lacked)
})
