import { DateTime } from "effect"
import type { EffectivePolicy } from "../../policy/EffectivePolicy.ts"
import type { LimitRaise } from "../../policy/LimitRaise.ts"
import * as Policy from "../../policy/Policy.ts"
import { layerName, type PolicyLayer, unreadableLayerMessage } from "../../policy/PolicyLayer.ts"
import type { PolicyRefusal } from "../../policy/Refusals.ts"
import { hasLimit } from "../../policy/SharedLimits.ts"
import type { FinalDecision } from "../api/policies/PolicyApi.ts"
import type { LimitOutcome } from "./LimitCheck.ts"
import { ofLimit } from "./LimitSentences.ts"

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

const allowed = (message: string, limits_checked: boolean): FinalDecision => ({
  allowed: true,
  error_code: null,
  message,
  check: null,
  layers: [],
  limits_checked
})

const withoutKey = allowed(
  "The policies allow the request. Rate limits and budgets were not checked: name a key.",
  false
)
const withoutCounters = allowed(
  "The policies allow the request. Rate limits and budgets could not be checked: what is used of them cannot be read now.",
  false
)
const withRoom = allowed("The request is allowed now, and its limits have room for it.", true)

const codes = {
  requests: "rate_limit_exceeded",
  tokens: "token_rate_limit_exceeded",
  nanos: "budget_exceeded"
} as const

/** The decision on a request that the policies allow. `limits` is `undefined` if no key counts it. */
export const decisionByLimits = (limits: LimitOutcome | undefined): FinalDecision => {
  if (limits === undefined) return withoutKey
  if (limits._tag === "Unknown") return withoutCounters
  if (limits._tag === "Room") return withRoom
  const { denial, meter } = limits
  const { amounts, check, layer } = denial
  return {
    allowed: false,
    error_code: codes[meter.unit],
    message: ofLimit({ field: meter.field, isShared: meter.scope.layer !== undefined, amounts }).sentence,
    check,
    layers: layer === undefined ? [] : [layer],
    limits_checked: true
  }
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
  layers: denial?.causes.map(layerName) ?? [],
  limits_checked: false
})
