import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import * as GuardrailPolicy from "../../policy/GuardrailPolicy.ts"
import { neutral, patched } from "../../policy/KeyPolicy.ts"
import { indexLayers, type PolicyLayer, type PolicyLayers } from "../../policy/PolicyLayer.ts"
import * as SharedLimits from "../../policy/SharedLimits.ts"
import type { PolicyLayerUpsert } from "../api/policies/PolicyLayersApi.ts"
import { ControlError } from "../api/schema/Errors.ts"
import { patchedGuardrailPolicy } from "./GuardrailPolicyValidation.ts"
import { refusedScope } from "./PolicyLayers.ts"

export const allLayers = ({ of, unknown }: PolicyLayers): ReadonlyArray<PolicyLayer> => [
  ...unknown,
  ...Object.values(of).flatMap((scopes) => [...scopes.values()])
]

/** Returns the layers as they would be after the layer was set. The layer takes the place of that of its scope. */
export const withProposed = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  layers: PolicyLayers,
  proposal: PolicyLayerUpsert
) {
  const scopeId = proposal.kind === "project" ? (proposal.scope_id?.toLowerCase() ?? null) : (proposal.scope_id ?? null)
  const refusal = refusedScope(proposal.kind, scopeId)
  if (refusal !== undefined)
    return yield* new ControlError("invalid_policy_payload", `scope_id ${refusal}.`, { param: "layer.scope_id" })
  const stored = layers.of[proposal.kind].get(scopeId ?? "")
  const layer: PolicyLayer = {
    kind: proposal.kind,
    scopeId,
    version: (stored?.version ?? 0) + 1,
    policy: proposal.policy === undefined ? (stored?.policy ?? neutral) : patched(neutral, proposal.policy ?? {}),
    guardrails:
      proposal.guardrail_policy === undefined
        ? (stored?.guardrails ?? GuardrailPolicy.neutral)
        : yield* patchedGuardrailPolicy(sql, GuardrailPolicy.neutral, proposal.guardrail_policy),
    shared: {
      limits:
        proposal.shared === undefined
          ? (stored?.shared?.limits ?? SharedLimits.none)
          : SharedLimits.of(proposal.shared ?? {}),
      since: {}
    }
  }
  const others = allLayers(layers).filter((one) => one !== stored)
  return indexLayers(proposal.enabled === false ? others : [...others, layer])
})
