import type { EffectivePolicy } from "../../policy/EffectivePolicy.ts"
import * as Facts from "../../policy/facts/Facts.ts"
import * as Policy from "../../policy/Policy.ts"
import { nameOf, type PolicyLayer, unreadableLayer } from "../../policy/PolicyLayer.ts"
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

/** What another than the policy refuses: the key's state, the route's settings, a body that cannot be read. */
export const refused = (error_code: string, message: string, layers: ReadonlyArray<string> = []): FinalDecision => ({
  allowed: false,
  error_code,
  message,
  check: null,
  layers
})

export const decided = (effective: EffectivePolicy, question: Policy.Question): FinalDecision =>
  shown(effective, question, Policy.decide(effective.policy, question)) ?? allowed

/** What is refused before the body is read. */
export const deniedBeforeBody = (effective: EffectivePolicy, question: Policy.Question): FinalDecision | undefined => {
  const unread = { ...question, facts: Facts.none }
  return shown(effective, unread, Policy.decideBeforeBody(effective.policy, unread))
}

const shown = (
  { layers }: EffectivePolicy,
  question: Policy.Question,
  decision: Policy.Decision
): FinalDecision | undefined => {
  if (decision._tag === "Allowed") return undefined
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
