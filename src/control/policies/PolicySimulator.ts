import { Clock, Context, DateTime, Effect, Layer, Predicate, Result, type Schema } from "effect"
import * as Definitions from "../../guardrails/Definitions.ts"
import * as Selection from "../../guardrails/Selection.ts"
import { type AllowList, allows } from "../../policy/AllowList.ts"
import * as EffectivePolicy from "../../policy/EffectivePolicy.ts"
import * as Estimate from "../../policy/Estimate.ts"
import * as Facts from "../../policy/facts/Facts.ts"
import * as GuardrailPolicy from "../../policy/GuardrailPolicy.ts"
import { patched } from "../../policy/KeyPolicy.ts"
import { policyOf } from "../../policy/KeyPreset.ts"
import { exceededUnusedDays, type KeyState, refusal, unusableReason } from "../../policy/KeyState.ts"
import * as LimitRaise from "../../policy/LimitRaise.ts"
import { allowsModel } from "../../policy/ModelPattern.ts"
import * as Policy from "../../policy/Policy.ts"
import { applicableLayers, layerName, type PolicyLayer } from "../../policy/PolicyLayer.ts"
import { toNanos } from "../../policy/Price.ts"
import * as Refusals from "../../policy/Refusals.ts"
import * as Routing from "../../policy/Routing.ts"
import * as BodyLimit from "../../policy/routes/BodyLimit.ts"
import { compatConfig } from "../../policy/routes/CanonicalRoute.ts"
import { defaults as closedWildcard } from "../../policy/routes/Passthrough.ts"
import type { ServiceCall } from "../../policy/ServiceCall.ts"
import * as ServicePricing from "../../policy/ServicePricing.ts"
import { GatewaySettings } from "../../process/GatewaySettings.ts"
import { Database } from "../../services/Database.ts"
import * as LimitScopes from "../../state/limits/LimitScopes.ts"
import * as Meters from "../../state/limits/Meters.ts"
import * as StoredKeys from "../../state/StoredKeys.ts"
import * as StoredRoutes from "../../state/StoredRoutes.ts"
import { RowReader } from "../../state/StoredRows.ts"
import * as StoredServices from "../../state/StoredServices.ts"
import type { Vault } from "../../state/Vault.ts"
import { type Simulation, SimulationResult } from "../api/policies/PolicyApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { type Actor, Audit, Snapshots } from "../audit/Audit.ts"
import { type StoreFailure, toStoreFailures, UnreadableRow } from "../store/Rows.ts"
import { patchedGuardrailPolicy } from "./GuardrailPolicyValidation.ts"
import * as LimitCheck from "./LimitCheck.ts"
import {
  appliedLayer,
  appliedRaise,
  decisionByLimits,
  denialReasons,
  refusedDecision,
  sharedLimits
} from "./PolicyReasons.ts"
import * as PolicyState from "./PolicyState.ts"
import { withProposed } from "./ProposedLayer.ts"

type SimulationRefusal = Refused<
  "not_found" | "unsupported_route" | "invalid_guardrail_request" | "guardrail_forbidden" | "invalid_policy_payload"
>

/**
 * Decides a hypothetical request under the current configuration, with the functions that the gateway uses. A
 * simulation counts against no limit. It writes only an audit event, which the specification requires.
 */
export class PolicySimulator extends Context.Service<
  PolicySimulator,
  {
    /** Decides without an audit event, for what nobody sees but the holder of the key. */
    readonly decide: (
      simulation: Simulation
    ) => Effect.Effect<
      { readonly result: SimulationResult; readonly limits: LimitCheck.LimitOutcome | undefined },
      SimulationRefusal | StoreFailure
    >
    readonly simulate: (
      simulation: Simulation
    ) => Effect.Effect<SimulationResult, SimulationRefusal | StoreFailure, Actor>
  }
>()("svc/control/PolicySimulator") {
  static readonly layer = Layer.suspend(() => Layer.effect(PolicySimulator, make))
}

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const { directCompatLimits, directCompatOwnership, directCompatPaths } = yield* GatewaySettings
  const compat = compatConfig(directCompatLimits, directCompatOwnership)
  const paths: Routing.RoutingPaths = { ...Routing.defaultPaths, compat: directCompatPaths, compatConfig: compat }
  const policyState = PolicyState.make(sql)
  const checkLimits = yield* LimitCheck.make
  const context = yield* Effect.context<Database | Vault>()
  const definitions = Effect.suspend(() => Effect.provide(Definitions.load(new RowReader()), context))
  const storedRouting = (reader: RowReader) =>
    Effect.provide(Effect.all({ routes: StoredRoutes.load(reader), services: StoredServices.load(reader) }), context)

  /** Returns the route of a request, and the route's row if this version cannot decode it. */
  const targetOf = Effect.fnUntraced(function* (method: string, path: string) {
    const reader = new RowReader()
    const stored = yield* storedRouting(reader)
    const match = Routing.find(method, path, { ...stored, passthrough: closedWildcard }, paths)
    if (Result.isFailure(match) || match.success.routeId === "wildcard") {
      return yield* new ControlError(
        "unsupported_route",
        "No route of the gateway matches this method and path. Requests to the wildcard cannot be simulated.",
        { param: "path" }
      )
    }
    const target = match.success
    const unreadable = reader.unreadable.find(
      ({ row, table }) => table === StoredRoutes.table.name && target.provider === "upstream" && row === target.routeId
    )
    return { target, unreadable }
  })

  const keyOf = Effect.fnUntraced(function* (id: string | null | undefined) {
    if (id == null) return undefined
    const missing = new ControlError("not_found", "There is no key with this id.", { param: "key_id" })
    return (yield* policyState.key(id)) ?? (yield* missing)
  })

  const evaluate = Effect.fnUntraced(function* (input: Simulation) {
    const method = input.method ?? "POST"
    const { target, unreadable } = yield* targetOf(method, input.path)
    const key = yield* keyOf(input.key_id)
    if (unreadable !== undefined) return yield* new UnreadableRow(unreadable)
    const isService = target.provider === "internal-service"
    const provider = input.provider ?? target.provider
    const serviceName = input.service_name ?? target.serviceName
    const serviceCall = target.service
    // A simulated service may be unregistered. The limits of the route `/providers/compat/*` then apply.
    const closedRefusal = input.service_name == null ? target.closed : undefined
    const config = isService && serviceCall === undefined ? compat : target.config

    const text =
      input.body === undefined || !(method === "POST" || isService)
        ? undefined
        : Buffer.from(JSON.stringify(input.body))
    const parsedFacts = text === undefined ? undefined : factsOf(target, text, input.body)
    const bodyFacts = parsedFacts !== undefined && Result.isSuccess(parsedFacts) ? parsedFacts.success : Facts.noFacts
    const facts = Facts.withTarget(bodyFacts, target)

    const storedLayers = yield* policyState.layers
    const layers = input.layer == null ? storedLayers : yield* withProposed(sql, storedLayers, input.layer)
    const ownPolicy = yield* ownLayer(key?.ownLayer, input)
    const owner = key && StoredKeys.ownerOf(key)
    const scope = { projectId: owner?.projectId, teamId: input.team_id ?? owner?.teamId, route: target.route }
    const now = yield* Clock.currentTimeMillis
    const raises = LimitRaise.inForce(key?.raises ?? [], now)
    const effectiveFor = (models: ReadonlyArray<string>) =>
      EffectivePolicy.of([...applicableLayers(layers, { ...scope, models }), ownPolicy], raises)
    const requestedModels = Facts.allModels(facts)
    const policyBeforeBody = effectiveFor([])
    const effective = effectiveFor(requestedModels)

    const { unpriced_models } = effective.policy
    const prices = yield* unpriced_models === "dearest" ? policyState.allPrices : policyState.prices(requestedModels)
    const price = Estimate.priceOfRequest(facts, prices, unpriced_models)
    const meters =
      key === undefined
        ? undefined
        : Meters.of(LimitScopes.of(layers, { ...key, ownLayer: ownPolicy }, effective), DateTime.makeUnsafe(now))
    const estimated = estimateOf(target, input.body, facts, price, effective, meters?.all ?? [])
    const wanted: Estimate.UsageEstimate =
      input.estimated_cost_usd == null
        ? estimated
        : { ...estimated, nanos: toNanos(input.estimated_cost_usd), nanosEstimated: false }
    const request: Policy.PolicyRequest = {
      route: target.route,
      provider,
      service: serviceName === undefined ? undefined : { name: serviceName, linked: key?.services ?? [] },
      worksLater: Policy.worksLater(target.provider, target.target),
      facts,
      requestBytes: input.request_body_bytes ?? text?.length ?? 0,
      responseBytes: input.response_body_bytes ?? undefined,
      hourUtc: new Date(now).getUTCHours(),
      running: 1,
      unpricedModels: serviceCall === undefined ? Estimate.unpricedModels(target.accounting, facts, prices) : [],
      estimatedCostNanos: wanted.nanos
    }

    const selected = Selection.forRequest(
      Selection.select(yield* definitions, effective.guardrails, facts.guardrails),
      facts
    )
    const refused =
      (key && keyRefusal(key, policyBeforeBody, now)) ??
      closedRefusal ??
      Refusals.beforeBody(
        method,
        { ...target, config },
        policyBeforeBody,
        { ...request, facts: Facts.noFacts },
        layers.of.model
      ) ??
      refuseLargeRequest(
        BodyLimit.ofRequests(config, policyBeforeBody.policy.max_request_body_bytes),
        request,
        policyBeforeBody
      ) ??
      (parsedFacts && Result.getOrUndefined(Result.flip(parsedFacts))) ??
      Refusals.afterBody(
        effective,
        request,
        layers.of.model,
        config.mode === "managed_by_gateway" ? Result.map(selected, responseGuard) : noGuardrails
      ) ??
      refuseLargeResponse(BodyLimit.ofResponses(config, null)[facts.stream ? "stream" : "whole"], request)

    const limits =
      refused === undefined && meters !== undefined ? yield* checkLimits(meters, wanted, effective, now) : undefined
    const result: SimulationResult = {
      auth: { key_id: key?.id ?? null, source: key === undefined ? "default_policy" : "stored_key" },
      route_match: { route: target.route, provider, service_name: serviceName ?? null },
      ...limitsOf(effective),
      effective_policy: effective.policy,
      warnings: warningsOf(effective, request),
      guardrail_plan:
        config.mode === "managed_by_gateway"
          ? Result.getOrElse(selected, () => []).map(({ definition }) => definition.name)
          : [],
      shared_limits: sharedLimits(effective),
      limit_raises: effective.raises.map(appliedRaise),
      reasons: denialReasons(effective, request),
      final_decision: refused === undefined ? decisionByLimits(limits) : refusedDecision(refused)
    }
    return { result, limits }
  })

  /** Returns the policy of the key, with the changes that the simulation requests. */
  const ownLayer = Effect.fnUntraced(function* (stored: PolicyLayer | undefined, input: Simulation) {
    const own = input.policy ?? {}
    const currentGuardrails = stored?.guardrails ?? GuardrailPolicy.neutral
    const layer: PolicyLayer = {
      kind: "key",
      scopeId: stored?.scopeId ?? null,
      version: stored?.version ?? 0,
      policy:
        stored !== undefined && input.preset == null
          ? patched(stored.policy, own)
          : policyOf(input.preset ?? undefined, own),
      guardrails: yield* patchedGuardrailPolicy(sql, currentGuardrails, input.guardrail_policy ?? undefined)
    }
    return layer
  })

  return PolicySimulator.of({
    decide: Effect.fn("PolicySimulator.decide")((input) => toStoreFailures(evaluate(input))),
    simulate: Effect.fn("PolicySimulator.simulate")((input) =>
      // Not within the transaction, because a sum of records that is too slow would end it.
      Effect.flatMap(toStoreFailures(evaluate(input)), ({ result }) =>
        audit.mutate(function* () {
          return {
            result,
            auditAction: { target: "policy", action: "policies:simulate" },
            targetId: result.auth.key_id ?? result.auth.source,
            snapshots: yield* snapshots(null, result),
            changes: []
          }
        })
      )
    )
  })
})

const snapshots = Snapshots.of(SimulationResult)

const limitsOf = ({ layers, policy, version }: EffectivePolicy.EffectivePolicy) => ({
  policy_merge: {
    policy_version: version,
    deny: policy.deny,
    allowed_routes: policy.allowed_routes,
    allowed_models: policy.allowed_models,
    allowed_providers: policy.allowed_providers,
    allowed_services: policy.allowed_services,
    applied_layers: layers.map(appliedLayer)
  },
  rate_limit_projection: {
    rpm_limit: policy.rpm_limit,
    tpm_limit: policy.tpm_limit,
    max_requests_per_day: policy.max_requests_per_day,
    max_tokens_per_day: policy.max_tokens_per_day
  },
  budget_projection: {
    daily_budget_usd: policy.daily_budget_usd,
    monthly_budget_usd: policy.monthly_budget_usd,
    max_cost_per_request: policy.max_cost_per_request
  }
})

/** Returns what the gateway would reserve for the request. */
const estimateOf = (
  { accounting, service }: Routing.Target,
  body: unknown,
  facts: Facts.Facts,
  price: ReturnType<typeof Estimate.priceOfRequest>,
  { policy }: EffectivePolicy.EffectivePolicy,
  limits: ReadonlyArray<Meters.Meter>
): Estimate.UsageEstimate =>
  service === undefined
    ? Estimate.estimateUsage(Estimate.accountingWithBody(accounting, facts), facts, price, {
        perResponse: Estimate.outputPerOpenChoice(facts, price, policy, limits),
        isSentUpstream: false
      })
    : estimateOfService(service, body, facts)

const estimateOfService = (
  { method, path, service: { pricing } }: ServiceCall,
  body: unknown,
  { boundedOutput, inputTokens }: Facts.Facts
): Estimate.UsageEstimate => {
  const price = ServicePricing.resolve(pricing, method, path, ServicePricing.selectJson(body))
  const tokens = inputTokens + boundedOutput
  return { inputTokens: tokens, tokens, ...ServicePricing.reservation(pricing, method, path, price) }
}

/** The body of a request to a service may be any JSON. Facts such as the model are read only from an object. */
const factsOf = (
  { provider, routeId }: Routing.Target,
  text: Uint8Array,
  body: Schema.Json = null
): Result.Result<Facts.Facts, Facts.BodyProblem> =>
  provider === "internal-service" && !Predicate.isObject(body)
    ? Result.succeed(Facts.factsOfSize(Facts.estimateInput(body, "anywhere")))
    : Result.map(Facts.parse(routeId, text), ({ facts }) => facts)

/** Also refuses a key that was unused for too long, because the gateway would disable it now. */
const keyRefusal = (key: KeyState, { policy }: EffectivePolicy.EffectivePolicy, now: number) => {
  const code =
    unusableReason(key, now) ??
    (exceededUnusedDays(key, policy, now) === undefined ? undefined : "disabled_virtual_key")
  return code && refusal(code)
}

/** The gateway stops receiving a body that is too large. The layers with the smallest limit cause the refusal. */
const refuseLargeRequest = (
  limit: BodyLimit.BodyLimit,
  { requestBytes }: Policy.PolicyRequest,
  { layers }: EffectivePolicy.EffectivePolicy
): Refusals.PolicyRefusal | undefined => {
  if (requestBytes <= limit.bytes) return undefined
  const causes =
    limit.setBy === "this key's policy"
      ? layers.filter(({ policy }) => policy.max_request_body_bytes === limit.bytes)
      : []
  return {
    code: "request_body_too_large",
    message: BodyLimit.requestTooLarge(limit),
    denial: { check: "request_bytes", causes }
  }
}

const refuseLargeResponse = (
  limit: BodyLimit.BodyLimit,
  { responseBytes = 0 }: Policy.PolicyRequest
): Refusals.PolicyRefusal | undefined =>
  responseBytes > limit.bytes
    ? { code: "response_body_too_large", message: BodyLimit.responseTooLarge(limit) }
    : undefined

const responseGuard = (selection: Selection.Selection) => ({
  inspectsResponse: Selection.inMode(selection, "post_call").length > 0
})

const noGuardrails = Result.succeed(undefined)

const warningsOf = (
  { layers, policy }: EffectivePolicy.EffectivePolicy,
  { facts, provider, route, service }: Policy.PolicyRequest
): ReadonlyArray<string> => {
  const excluded = <A>(name: string, list: AllowList<A>, values: ReadonlyArray<A>, allowed = allows<A>) =>
    values
      .filter((value) => !allowed(list, value))
      .map(
        (value) =>
          `The effective ${name} list excludes ${value}: a value is allowed only if the lists of all policy layers and of the key allow it.`
      )
  return [
    ...excluded("route", policy.allowed_routes, [route]),
    ...excluded("provider", policy.allowed_providers, [provider]),
    ...excluded("model", policy.allowed_models, Facts.allModels(facts), allowsModel),
    ...excluded("service", policy.allowed_services, [service?.name ?? facts.service ?? []].flat()),
    ...Policy.disjointLists(policy, layers).map(
      ({ layers, list }) =>
        `${list} of ${layers.map(layerName).join(" and ")} have nothing in common, so no value is allowed.`
    )
  ]
}
