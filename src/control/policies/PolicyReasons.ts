import type { EffectivePolicy } from "../../policy/EffectivePolicy.ts"
import * as Policy from "../../policy/Policy.ts"
import { nameOf, type PolicyLayer, unreadableLayer } from "../../policy/PolicyLayer.ts"
import type { Refusal } from "../../policy/Refusals.ts"
import { limitsAnything } from "../../policy/SharedLimits.ts"
import type { FinalDecision } from "../api/policies/PolicyApi.ts"

/** A layer as it is shown. */
export const applied = ({ kind, scopeId, version }: PolicyLayer) => ({
  kind,
  scope_id: scopeId,
  policy_version: version
})

/** Layer by layer, what each alone has against the request. */
export const reasons = ({ layers }: EffectivePolicy, question: Policy.Question) =>
  layers.map((layer) => ({
    ...applied(layer),
    denies: Policy.denials(layer.policy, question).map(({ check, code, message }) => ({
      check,
      code,
      message: layer.unreadable === true ? unreadableLayer : message
    }))
  }))

/** What the request shares with others, layer by layer. */
export const sharedLimits = ({ layers }: EffectivePolicy) =>
  layers.flatMap((layer) =>
    layer.shared !== undefined && limitsAnything(layer.shared.limits)
      ? [{ layer: nameOf(layer), ...layer.shared.limits }]
      : []
  )

export const allowed: FinalDecision = {
  allowed: true,
  error_code: null,
  message: "The request is allowed; its rate limits and budgets were not looked at.",
  check: null,
  layers: []
}

/** A refusal as it is shown. */
export const shown = ({
  code,
  denial,
  message
}: Pick<Refusal, "denial" | "message"> & { readonly code: string }): FinalDecision => ({
  allowed: false,
  error_code: code,
  message: denial?.causes.some(({ unreadable }) => unreadable === true) === true ? unreadableLayer : message,
  check: denial?.check ?? null,
  layers: denial?.causes.map(nameOf) ?? []
})
