import { Result } from "effect"
import type { EffectivePolicy } from "./EffectivePolicy.ts"
import * as Facts from "./facts/Facts.ts"
import * as Query from "./facts/Query.ts"
import type { KeyPolicy } from "./KeyPolicy.ts"
import { allowsModel } from "./ModelPattern.ts"
import * as Policy from "./Policy.ts"
import { nameOfShared, type PolicyLayer } from "./PolicyLayer.ts"
import type { Target } from "./Routing.ts"

/** Why a request goes no further, in words for its client. */
export interface Refusal {
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
  question: Policy.Question,
  models: ModelLayers,
  full?: () => Full | undefined
): Refusal | Full | undefined => {
  if (!target.config.enabled) return disabledRoute
  const misplaced = target.routeId === "service" ? undefined : Query.deciding(target.target, Facts.bodyMembers)
  if (misplaced !== undefined && method === "POST") return inTheQuery(misplaced)
  const decision = Policy.decideBeforeBody(effective.policy, question)
  if (decision._tag === "Denied") return denied(decision.denial, effective, question)
  const filled = full?.()
  if (filled !== undefined) return filled
  const { model } = target
  return model === undefined || mayUseModel(effective.policy, models, model) ? undefined : noSuchModel(model)
}

/** What guards a request. */
interface Guard {
  readonly readsAnswer: boolean
}

/** The first reason to refuse a request once its body is read. `guard`: what guards it, or why nothing can. */
export const afterBody = (
  effective: EffectivePolicy,
  question: Policy.Question,
  models: ModelLayers,
  guard: Result.Result<Guard | undefined, Refusal>
): Refusal | undefined => {
  const refusal = byPolicy(effective, question)
  if (refusal !== undefined) return refusal
  if (Result.isFailure(guard)) return guard.failure
  if (!question.worksLater) return undefined
  if (models.size > 0) return ungoverned("policies of models")
  return guard.success?.readsAnswer === true ? ungoverned("a guardrail that looks at answers") : undefined
}

/** By the checks of a policy, and by the limits that work which runs later cannot be held to. */
export const byPolicy = (effective: EffectivePolicy, question: Policy.Question): Refusal | undefined => {
  const decision = Policy.decide(effective.policy, question)
  if (decision._tag === "Denied") return denied(decision.denial, effective, question)
  return question.worksLater ? bySharedLimit(effective) : undefined
}

const denied = (denial: Policy.Denial, { layers }: EffectivePolicy, question: Policy.Question): Refusal => {
  const { check, ...refusal } = denial
  return { ...refusal, denial: { check, causes: Policy.causes(layers, check, question) } }
}

const bySharedLimit = ({ layers }: EffectivePolicy): Refusal | undefined => {
  for (const layer of layers) {
    const field = Policy.limitsOfUsage.find((field) => layer.shared?.limits[field]._tag === "Limited")
    if (field !== undefined) {
      const denial = { check: `shared_${field}`, causes: [layer] }
      return { ...Policy.laterWork(nameOfShared(layer, field)), denial }
    }
  }
  return undefined
}

/** `rule` would not hold for work that runs after its request was answered. */
const ungoverned = (rule: string): Refusal => ({
  ...Policy.laterWork(rule),
  denial: { check: "later_work", causes: [] }
})

/** By the lists of models, and by the layer of the model itself. */
export const mayUseModel = (policy: KeyPolicy, models: ModelLayers, model: string): boolean =>
  allowsModel(policy.allowed_models, model) && models.get(model)?.policy.deny !== true

export const disabledRoute: Refusal = {
  code: "disabled_route",
  message: "Route is disabled by gateway policy."
}

const inTheQuery = (member: string): Refusal => ({
  code: "invalid_request_body",
  message: `Send "${member}" in the body: some upstreams would take the query's for it.`,
  param: member
})

const noSuchModel = (model: string): Refusal => ({
  code: "object_not_found",
  message: Policy.unlistedModel(model),
  param: "model"
})
