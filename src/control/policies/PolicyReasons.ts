import { DateTime } from "effect"
import type { EffectivePolicy } from "../../policy/EffectivePolicy.ts"
import type { LimitRaise } from "../../policy/LimitRaise.ts"
import * as Policy from "../../policy/Policy.ts"
import { layerName, type PolicyLayer, unreadableLayerMessage } from "../../policy/PolicyLayer.ts"
import type { PolicyRefusal } from "../../policy/Refusals.ts"
import { hasLimit } from "../../policy/SharedLimits.ts"
import type { FinalDecision } from "../api/policies/PolicyApi.ts"

export const appliedLayer = ({ kind, scopeId, version }: PolicyLayer) => ({
  kind,
  scope_id: scopeId,
  policy_version: version
})

export const appliedRaise = ({ until, ...raise }: LimitRaise) => ({ ...raise, until: DateTime.makeUnsafe(until) })

/** Lists, for each policy layer, the checks that fail under the policy of this layer alone. */
export const denialReasons = ({ layers }: EffectivePolicy, request: Policy.PolicyRequest) =>
  layers.map((layer) => ({
    ...appliedLayer(layer),
    denies: Policy.allDenials(layer.policy, request).map(({ check, code, message }) => ({
      check,
      code,
      message: layer.unreadable === true ? unreadableLayerMessage : message
    }))
  }))

export const sharedLimits = ({ layers }: EffectivePolicy) =>
  layers.flatMap((layer) =>
    layer.shared !== undefined && hasLimit(layer.shared.limits)
      ? [{ layer: layerName(layer), ...layer.shared.limits }]
      : []
  )

export const allowedDecision: FinalDecision = {
  allowed: true,
  error_code: null,
  message: "The request is allowed. Rate limits and budgets were not checked.",
  check: null,
  layers: []
}

export const refusedDecision = ({
  code,
  denial,
  message
}: Pick<PolicyRefusal, "denial" | "message"> & { readonly code: string }): FinalDecision => ({
  allowed: false,
  error_code: code,
  message: denial?.causes.some(({ unreadable }) => unreadable === true) === true ? unreadableLayerMessage : message,
  check: denial?.check ?? null,
  layers: denial?.causes.map(layerName) ?? []
})
