import type { EffectivePolicy } from "../gateway/model/EffectivePolicy.ts"
import * as Policy from "../gateway/model/Policy.ts"
import { nameOf, type PolicyLayer, unreadableLayer } from "../gateway/model/PolicyLayer.ts"
import type { FinalDecision } from "./api/PolicyApi.ts"

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

export const allowed: FinalDecision = {
  allowed: true,
  error_code: null,
  message: "The request is allowed; its rate limits and budgets were not looked at.",
  check: null,
  layers: []
}

/** What another than the policy refuses: the key's state, the route's settings, a body that cannot be read. */
export const refused = (error_code: string, message: string, layers: ReadonlyArray<string> = []): FinalDecision => ({
  allowed: false,
  error_code,
  message,
  check: null,
  layers
})

export const decided = ({ layers, policy }: EffectivePolicy, question: Policy.Question): FinalDecision => {
  const decision = Policy.decide(policy, question)
  if (decision._tag === "Allowed") return allowed
  const { check, code, message } = decision.denial
  const causes = Policy.causes(layers, check, question)
  return {
    allowed: false,
    error_code: code,
    message: causes.some(({ unreadable }) => unreadable === true) ? unreadableLayer : message,
    check,
    layers: causes.map(nameOf)
  }
}
