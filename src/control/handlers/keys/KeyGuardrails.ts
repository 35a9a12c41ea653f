import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../../api/ControlApi.ts"
import { KeyGuardrails } from "../../keys/KeyGuardrails.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "key-guardrails",
  Effect.fn(function* (handlers) {
    const guardrails = yield* KeyGuardrails
    return handlers.handleAll({
      list: () => Effect.map(guardrails.offered, (offered) => ({ guardrails: offered })),
      test: ({ payload }) => guardrails.test(payload)
    })
  })
)
