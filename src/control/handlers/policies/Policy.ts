import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { KeyPreset, policyOf } from "../../../policy/KeyPreset.ts"
import { ControlApi } from "../../api/ControlApi.ts"
import { PolicyExplanations } from "../../policies/PolicyExplanations.ts"
import { PolicySimulator } from "../../policies/PolicySimulator.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "policy",
  Effect.fn(function* (handlers) {
    const simulator = yield* PolicySimulator
    const explanations = yield* PolicyExplanations
    return handlers.handleAll({
      simulate: ({ payload }) => simulator.simulate(payload),
      presets: () => Effect.succeed(KeyPreset.literals.map((name) => ({ name, policy: policyOf(name) }))),
      explain: ({ params }) => explanations.explain(params.request_id)
    })
  })
)
