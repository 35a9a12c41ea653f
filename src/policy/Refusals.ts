import { Result } from "effect"
import type { EffectivePolicy } from "./EffectivePolicy.ts"
import * as Facts from "./facts/Facts.ts"
import * as Query from "./facts/Query.ts"
import type { KeyPolicy } from "./KeyPolicy.ts"
import { allowsModel } from "./ModelPattern.ts"
import * as Policy from "./Policy.ts"
import { type PolicyLayer, sharedLimitName } from "./PolicyLayer.ts"
import type { Target } from "./Routing.ts"

/** Why a request goes no further, in words for its client. */
export interface PolicyRefusal {
  readonly code:
    | Policy.DenialCode
    | "disabled_route"
    | "guardrail_forbidden"
    | "guardrail_unavailable"
    | "invalid_guardrail_request"
    | "invalid_request_body"
    | "object_not_found"
  readonly message: string
  readonly param?: string
  readonly retryAfterSeconds?: number
  /** The check of a policy that refuses, and the layers that refuse by it on their own. */
  readonly denial?: { readonly check: string; readonly causes: ReadonlyArray<PolicyLayer> }
}

/** The layers of models, by the model. */
type ModelLayers = ReadonlyMap<string, PolicyLayer>

/**
 * The first reason to refuse a request before its body is read. `question`: without what a body says. `effective`:
 * without the layers of models. `full`: finds the limit that has no room for another request, where limits are looked at.
 */
export const beforeBody = <Full = never>(
  method: string,
  target: Target,
  effective: EffectivePolicy,
  question: Policy.PolicyRequest,
  models: ModelLayers,
  full?: () => Full | undefined
): PolicyRefusal | Full | undefined => {
  if (!target.config.enabled) return disabledRoute
  const misplaced = target.routeId === "service" ? undefined : Query.decidingParameter(target.target, Facts.bodyMembers)
  if (misplaced !== undefined && method === "POST") return memberInQuery(misplaced)
  const decision = Policy.decideBeforeBody(effective.policy, question)
  if (decision._tag === "Denied") return refusalOfDenial(decision.denial, effective, question)
  const filled = full?.()
  if (filled !== undefined) return filled
  const { model } = target
  return model === undefined || isModelAllowed(effective.policy, models, model) ? undefined : modelNotFound(model)
}

/** What guards a request. */
interface ResponseGuard {
  readonly inspectsResponse: boolean
}

/** The first reason to refuse a request once its body is read. `guard`: what guards it, or why nothing can. */
export const afterBody = (
  effective: EffectivePolicy,
  question: Policy.PolicyRequest,
  models: ModelLayers,
  guard: Result.Result<ResponseGuard | undefined, PolicyRefusal>
): PolicyRefusal | undefined => {
  const refusal = byPolicy(effective, question)
  if (refusal !== undefined) return refusal
  if (Result.isFailure(guard)) return guard.failure
  if (!question.worksLater) return undefined
  if (models.size > 0) return ungovernedLaterWork("policies of models")
  return guard.success?.inspectsResponse === true ? ungovernedLaterWork("a guardrail that looks at answers") : undefined
}

/** By the checks of a policy, and by the limits that work which runs later cannot be held to. */
export const byPolicy = (effective: EffectivePolicy, question: Policy.PolicyRequest): PolicyRefusal | undefined => {
  const decision = Policy.decide(effective.policy, question)
  if (decision._tag === "Denied") return refusalOfDenial(decision.denial, effective, question)
  return question.worksLater ? bySharedLimit(effective) : undefined
}

const refusalOfDenial = (
  denial: Policy.Denial,
  { layers }: EffectivePolicy,
  question: Policy.PolicyRequest
): PolicyRefusal => {
  const { check, ...refusal } = denial
  return { ...refusal, denial: { check, causes: Policy.denyingLayers(layers, check, question) } }
}

const bySharedLimit = ({ layers }: EffectivePolicy): PolicyRefusal | undefined => {
  for (const layer of layers) {
    const field = Policy.usageLimitFields.find((field) => layer.shared?.limits[field]._tag === "Limited")
    if (field !== undefined) {
      const denial = { check: `shared_${field}`, causes: [layer] }
      return { ...Policy.laterWorkDenial(sharedLimitName(layer, field)), denial }
    }
  }
  return undefined
}

/** `rule` would not hold for work that runs after its request was answered. */
const ungovernedLaterWork = (rule: string): PolicyRefusal => ({
  ...Policy.laterWorkDenial(rule),
  denial: { check: "later_work", causes: [] }
})

/** By the lists of models, and by the layer of the model itself. */
export const isModelAllowed = (policy: KeyPolicy, models: ModelLayers, model: string): boolean =>
  allowsModel(policy.allowed_models, model) && models.get(model)?.policy.deny !== true

export const disabledRoute: PolicyRefusal = {
  code: "disabled_route",
  message: "Route is disabled by gateway policy."
}

const memberInQuery = (member: string): PolicyRefusal => ({
  code: "invalid_request_body",
  message: `Send "${member}" in the body: some upstreams would take the query's for it.`,
  param: member
})

const modelNotFound = (model: string): PolicyRefusal => ({
  code: "object_not_found",
  message: Policy.unlistedModelMessage(model),
  param: "model"
})
