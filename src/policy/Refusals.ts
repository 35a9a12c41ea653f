import { Result } from "effect"
import type { EffectivePolicy } from "./EffectivePolicy.ts"
import * as Facts from "./facts/Facts.ts"
import * as NamedModels from "./facts/NamedModels.ts"
import * as Query from "./facts/Query.ts"
import type { KeyPolicy } from "./KeyPolicy.ts"
import { allowsModel } from "./ModelPattern.ts"
import * as Policy from "./Policy.ts"
import { type PolicyLayer, sharedLimitName } from "./PolicyLayer.ts"
import type { Target } from "./Routing.ts"

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
  /** The policy check that refused the request, and the policy layers that would each refuse it alone. */
  readonly denial?: { readonly check: string; readonly causes: ReadonlyArray<PolicyLayer> }
}

type ModelLayers = ReadonlyMap<string, PolicyLayer>

/** Decides before the body is read, so `request` has no facts from the body. `full` finds a limit that is used up. */
export const beforeBody = <Full = never>(
  method: string,
  target: Target,
  effective: EffectivePolicy,
  request: Policy.PolicyRequest,
  models: ModelLayers,
  full?: () => Full | undefined
): PolicyRefusal | Full | undefined => {
  if (!target.config.enabled) return disabledRoute
  const misplaced = target.routeId === "service" ? undefined : Query.decidingParameter(target.target, Facts.bodyMembers)
  if (misplaced !== undefined && method === "POST") return memberInQuery(misplaced)
  if (namesSeveralModels(target)) return commaInPath
  const decision = Policy.decideBeforeBody(effective.policy, request)
  if (decision._tag === "Denied") return refusalOfDenial(decision.denial, effective, request)
  const filled = full?.()
  if (filled !== undefined) return filled
  const { model } = target
  return model === undefined || isModelAllowed(effective.policy, models, model) ? undefined : modelNotFound(model)
}

interface ResponseGuard {
  readonly inspectsResponse: boolean
}

/** Decides with the facts from the body. `guard` is a failure if the request's guardrails cannot run. */
export const afterBody = (
  effective: EffectivePolicy,
  request: Policy.PolicyRequest,
  models: ModelLayers,
  guard: Result.Result<ResponseGuard | undefined, PolicyRefusal>
): PolicyRefusal | undefined => {
  const refusal = byPolicy(effective, request)
  if (refusal !== undefined) return refusal
  if (Result.isFailure(guard)) return guard.failure
  if (!request.worksLater) return undefined
  if (models.size > 0) return ungovernedLaterWork("model policies")
  return guard.success?.inspectsResponse === true ? ungovernedLaterWork("a guardrail on responses") : undefined
}

/** Applies the policy. Work after the response is also refused if a shared limit could not be enforced on it. */
export const byPolicy = (effective: EffectivePolicy, request: Policy.PolicyRequest): PolicyRefusal | undefined => {
  const decision = Policy.decide(effective.policy, request)
  if (decision._tag === "Denied") return refusalOfDenial(decision.denial, effective, request)
  return request.worksLater ? bySharedLimit(effective) : undefined
}

const refusalOfDenial = (
  denial: Policy.Denial,
  { layers }: EffectivePolicy,
  request: Policy.PolicyRequest
): PolicyRefusal => {
  const { check, ...refusal } = denial
  return { ...refusal, denial: { check, causes: Policy.denyingLayers(layers, check, request) } }
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

const ungovernedLaterWork = (rule: string): PolicyRefusal => ({
  ...Policy.laterWorkDenial(rule),
  denial: { check: "later_work", causes: [] }
})

export const isModelAllowed = (policy: KeyPolicy, models: ModelLayers, model: string): boolean =>
  allowsModel(policy.allowed_models, model) && models.get(model)?.policy.deny !== true

export const disabledRoute: PolicyRefusal = {
  code: "disabled_route",
  message: "Route is disabled by gateway policy."
}

const memberInQuery = (member: string): PolicyRefusal => ({
  code: "invalid_request_body",
  message: `Send "${member}" in the body, not in the query: some upstreams would use the query's value.`,
  param: member
})

/** On other routes the path either is fixed or belongs to a registered service. */
const namesSeveralModels = ({ model, provider, target }: Target): boolean =>
  model?.includes(",") === true || (provider === "compat" && NamedModels.hasCommaInPath(target))

const commaInPath: PolicyRefusal = {
  code: "invalid_request_body",
  message: NamedModels.commaMessage("the path"),
  param: "path"
}

const modelNotFound = (model: string): PolicyRefusal => ({
  code: "object_not_found",
  message: Policy.unlistedModelMessage(model),
  param: "model"
})
