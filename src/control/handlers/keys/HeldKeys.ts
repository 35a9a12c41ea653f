import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../../api/ControlApi.ts"
import { HeldKeys } from "../../holder/HeldKeys.ts"
import { KeyGuardrails } from "../../keys/KeyGuardrails.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "me",
  Effect.fn(function* (handlers) {
    const held = yield* HeldKeys
    const guardrails = yield* KeyGuardrails
    return handlers.handleAll({
      show: () => held.show,
      limits: () => held.limits,
      usage: ({ query }) => held.usage(query),
      models: () => held.models,
      requests: ({ query }) => held.requests(query),
      guardrails: () => Effect.map(guardrails.offered, (offered) => ({ guardrails: offered })),
      rotate: ({ payload }) => held.rotate(payload?.grace_seconds ?? 0)
    })
  })
)
