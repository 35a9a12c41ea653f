import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { KeyPreset, policyOf } from "../../../policy/KeyPreset.ts"
import { LayerKind } from "../../../policy/PolicyLayer.ts"
import { PolicyRoute } from "../../../policy/routes/CanonicalRoute.ts"
import { limitFields } from "../../../policy/SharedLimits.ts"
import { ControlApi } from "../../api/ControlApi.ts"
import { PolicyImpact } from "../../configuration/PolicyImpact.ts"
import { EffectivePolicies } from "../../policies/EffectivePolicies.ts"
import { PolicyExplanations } from "../../policies/PolicyExplanations.ts"
import { policyFields } from "../../policies/PolicyFields.ts"
import { PolicySimulator } from "../../policies/PolicySimulator.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "policy",
  Effect.fn(function* (handlers) {
    const simulator = yield* PolicySimulator
    const explanations = yield* PolicyExplanations
    const effective = yield* EffectivePolicies
    const impact = yield* PolicyImpact
    return handlers.handleAll({
      simulate: ({ payload }) => simulator.simulate(payload),
      fields: () =>
        Effect.sync(() => ({
          fields: policyFields(),
          shared: limitFields,
          layer_kinds: LayerKind.literals,
          routes: PolicyRoute.literals
        })),
      effective: ({ query }) => effective.show(query),
      impact: ({ payload }) => impact.of(payload),
      presets: () => Effect.succeed(KeyPreset.literals.map((name) => ({ name, policy: policyOf(name) }))),
      explain: ({ params }) => explanations.explain(params.request_id)
    })
  })
)
