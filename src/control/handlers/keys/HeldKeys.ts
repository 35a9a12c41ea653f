import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../../api/ControlApi.ts"
import { KeyHolder } from "../../api/schema/Security.ts"
import { asHolder } from "../../holder/AsHolder.ts"
import { HeldKeys } from "../../holder/HeldKeys.ts"
import { HeldSecrets } from "../../holder/HeldSecrets.ts"
import { KeyTests } from "../../holder/KeyTests.ts"
import { KeyGuardrails } from "../../keys/KeyGuardrails.ts"
import { RaiseRequests } from "../../limits/RaiseRequests.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "me",
  Effect.fn(function* (handlers) {
    const held = yield* HeldKeys
    const secrets = yield* HeldSecrets
    const guardrails = yield* KeyGuardrails
    const tests = yield* KeyTests
    const requests = yield* RaiseRequests
    return handlers.handleAll({
      show: () => held.show,
      limits: () => held.limits,
      usage: ({ query }) => held.usage(query),
      models: () => held.models,
      requests: ({ query }) => held.requests(query),
      guardrails: () => Effect.map(guardrails.offered, (offered) => ({ guardrails: offered })),
      rotate: ({ payload }) => secrets.rotate(payload?.grace_seconds ?? 0),
      endGrace: () => secrets.endGrace,
      revoke: () => secrets.revoke,
      history: () => secrets.history,
      test: ({ payload }) => tests.test(payload),
      raiseRequests: () => Effect.flatMap(KeyHolder, ({ keyId }) => requests.ofKey(keyId)),
      askForRaise: ({ payload }) =>
        Effect.flatMap(KeyHolder, ({ keyId }) => requests.ask(keyId, payload)).pipe(asHolder)
    })
  })
)
