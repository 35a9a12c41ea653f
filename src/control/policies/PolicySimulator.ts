import { Clock, Context, Effect, Layer, Predicate, Result, type Schema } from "effect"
import * as Definitions from "../../guardrails/Definitions.ts"
import * as Selection from "../../guardrails/Selection.ts"
import { type AllowList, allows } from "../../policy/AllowList.ts"
import * as EffectivePolicy from "../../policy/EffectivePolicy.ts"
import * as Estimate from "../../policy/Estimate.ts"
import * as Facts from "../../policy/facts/Facts.ts"
import * as GuardrailPolicy from "../../policy/GuardrailPolicy.ts"
import { patched } from "../../policy/KeyPolicy.ts"
import { policyOf } from "../../policy/KeyPreset.ts"
import { overdue, refusals, unusable } from "../../policy/KeyState.ts"
import { allowsModel } from "../../policy/ModelPattern.ts"
import * as Policy from "../../policy/Policy.ts"
import { nameOf, type PolicyLayer } from "../../policy/PolicyLayer.ts"
import { toNanos } from "../../policy/Price.ts"
import { answerTooLarge, type BodyLimit, ofAnswers, ofRequests, tooLarge } from "../../policy/routes/BodyLimit.ts"
import { compatConfig, type PolicyRoute, type Provider, type RouteId } from "../../policy/routes/CanonicalRoute.ts"
import * as CompatPaths from "../../policy/routes/CompatPaths.ts"
import * as Path from "../../policy/routes/Path.ts"
import * as RouteTable from "../../policy/routes/RouteTable.ts"
import * as ServiceCall from "../../policy/ServiceCall.ts"
import * as ServicePricing from "../../policy/ServicePricing.ts"
import type * as ServiceTable from "../../policy/ServiceTable.ts"
import { GatewaySettings } from "../../process/Settings.ts"
import { Database } from "../../services/Database.ts"
import { RowReader } from "../../state/StoredRows.ts"
import * as StoredServices from "../../state/StoredServices.ts"
import type { Vault } from "../../state/Vault.ts"
import { type FinalDecision, Simulated, type Simulation } from "../api/policies/PolicyApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { type Actor, Audit, Snapshots } from "../audit/Audit.ts"
import type { StoreFailure } from "../store/Store.ts"
import { guardrailsOf } from "./GuardrailNames.ts"
import { allowed, applied, decided, deniedBeforeBody, reasons, refused, sharedLimits } from "./PolicyReasons.ts"
import * as PolicyState from "./PolicyState.ts"

type Refusal = Refused<"not_found" | "unsupported_route" | "invalid_guardrail_request" | "guardrail_forbidden">

/**
 * Decides on a request that nobody makes, by the functions that the gateway decides with, on what is configured now. No
 * counter is touched. (The specification audits it; a simulation changes nothing else.)
 */
export class PolicySimulator extends Context.Service<
  PolicySimulator,
  { readonly simulate: (simulation: Simulation) => Effect.Effect<Simulated, Refusal | StoreFailure, Actor> }
>()("svc/control/PolicySimulator") {
  static readonly layer = Layer.suspend(() => Layer.effect(PolicySimulator, make))
}

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const { directCompatLimits, directCompatOwnership, directCompatPaths } = yield* GatewaySettings
  const compat = compatConfig(directCompatLimits, directCompatOwnership)
  const state = PolicyState.make(sql)
  const context = yield* Effect.context<Database | Vault>()
  const definitions = Effect.suspend(() => Effect.provide(Definitions.load(new RowReader()), context))
  const services = Effect.suspend(() => Effect.provide(StoredServices.load(new RowReader()), context))

  const evaluate = Effect.fnUntraced(function* (input: Simulation) {
    const method = input.method ?? "POST"
    const registry = yield* services
    const found = routeOf(method, input.path, registry, directCompatPaths)
    if (found === undefined) {
      return yield* new ControlError("unsupported_route", "Route is not supported by this gateway.", { param: "path" })
    }
    const key = input.key_id == null ? undefined : yield* state.key(input.key_id)
    if (input.key_id != null && key === undefined) {
      return yield* new ControlError("not_found", "There is no key with this id.", { param: "key_id" })
    }
    const provider = input.provider ?? found.provider
    const serviceName = input.service_name ?? found.service?.name
    const call = found.service?.call
    // a service that is supposed in its place need not be registered
    const closed = input.service_name == null ? found.service?.closed : undefined
    const configured = found.provider === "upstream" ? found.routeId : undefined
    const settings =
      call === undefined
        ? ((configured === undefined ? undefined : yield* state.route(configured)) ?? compat)
        : call.service.config

    const sends = method === "POST" || found.service !== undefined
    const text = input.body === undefined || !sends ? undefined : Buffer.from(JSON.stringify(input.body))
    const read = text === undefined ? undefined : factsOf(found, text, input.body)
    const said = read !== undefined && Result.isSuccess(read) ? read.success : Facts.none
    const facts = Facts.withTarget(said, found)

    const own = yield* ownLayer(key?.own, input)
    const layersFor = (models: ReadonlyArray<string>) =>
      Effect.map(
        state.layers({
          projectId: key?.projectId,
          teamId: input.team_id ?? key?.teamId,
          route: found.route,
          models
        }),
        (layers) => EffectivePolicy.of([...layers, own])
      )
    const named = Facts.everyModel(facts)
    const unread = yield* layersFor([])
    const effective = yield* layersFor(named)

    const prices = yield* state.prices(named)
    const price = Estimate.priceOf(facts, prices)
    const accounting =
      found.routeId === undefined ? "answer" : Estimate.accountingOf(found.routeId, method, settings.mode)
    const now = yield* Clock.currentTimeMillis
    const question: Policy.Question = {
      route: found.route,
      provider,
      service: serviceName === undefined ? undefined : { name: serviceName, linked: key?.services ?? [] },
      worksLater: Policy.worksLater(found.provider, found.target),
      facts,
      requestBytes: input.request_body_bytes ?? text?.length ?? 0,
      responseBytes: input.response_body_bytes ?? undefined,
      hourUtc: new Date(now).getUTCHours(),
      running: 1,
      unpricedModels: call === undefined ? Estimate.unpriced(accounting, facts, prices) : [],
      estimatedCostNanos:
        input.estimated_cost_usd == null
          ? call === undefined
            ? Estimate.wanted(Estimate.accountingFor(accounting, facts), facts, price, {
                each: Estimate.openOutput(facts, price, effective.policy, []),
                written: false
              }).nanos
            : reservedFor(call, input.body)
          : toNanos(input.estimated_cost_usd)
    }

    const selected = Selection.forRequest(
      Selection.select(yield* definitions, effective.guardrails, facts.guardrails),
      facts
    )
    const disabledBy = key === undefined ? undefined : keyRefusal(key.state, unread, now)
    const requestLimit = ofRequests(settings, unread.policy.max_request_body_bytes)
    const final: FinalDecision =
      disabledBy ??
      (closed && refused(closed.code, closed.message)) ??
      (settings.enabled ? undefined : refused("disabled_route", "Route is disabled by gateway policy.")) ??
      deniedBeforeBody(unread, question) ??
      (found.model === undefined || allowsModel(unread.policy.allowed_models, found.model)
        ? undefined
        : refused("object_not_found", Policy.unlistedModel(found.model))) ??
      (question.requestBytes > requestLimit.bytes ? oversized(requestLimit, unread) : undefined) ??
      (read !== undefined && Result.isFailure(read) ? refused(read.failure.code, read.failure.message) : undefined) ??
      guarded(
        routeBounded(
          decided(effective, question),
          question,
          ofAnswers(settings, null)[facts.stream ? "stream" : "whole"]
        ),
        settings.mode === "managed_by_gateway" ? selected : unguarded
      )

    const { layers, policy, version } = effective
    const simulated: Simulated = {
      auth: { key_id: key?.id ?? null, source: key === undefined ? "default_policy" : "stored_key" },
      route_match: { route: found.route, provider, service_name: serviceName ?? null },
      policy_merge: {
        policy_version: version,
        deny: policy.deny,
        allowed_routes: policy.allowed_routes,
        allowed_models: policy.allowed_models,
        allowed_providers: policy.allowed_providers,
        allowed_services: policy.allowed_services,
        applied_layers: layers.map(applied)
      },
      warnings: warningsOf(effective, question),
      guardrail_plan: Result.getOrElse(selected, () => []).map(({ definition }) => definition.name),
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
      },
      shared_limits: sharedLimits(effective),
      reasons: reasons(effective, question),
      final_decision: final
    }
    return simulated
  })

  /** The key's own policy as the simulation supposes it to be. */
  const ownLayer = Effect.fnUntraced(function* (stored: PolicyLayer | undefined, input: Simulation) {
    const base = stored !== undefined && input.preset == null ? stored.policy : policyOf(input.preset ?? undefined)
    const held = stored?.guardrails ?? GuardrailPolicy.neutral
    const own: PolicyLayer = {
      kind: "key",
      scopeId: stored?.scopeId ?? null,
      version: stored?.version ?? 0,
      policy: patched(base, input.policy ?? {}),
      guardrails: yield* guardrailsOf(sql, held, input.guardrail_policy ?? undefined)
    }
    return own
  })

  return PolicySimulator.of({
    simulate: Effect.fn("PolicySimulator.simulate")((input) =>
      audit.mutate(
        Effect.gen(function* () {
          const result = yield* evaluate(input)
          return {
            result,
            deed: { target: "policy", action: "policies:simulate" },
            targetId: result.auth.key_id ?? result.auth.source,
            snapshots: yield* snapshots(null, result),
            changes: []
          }
        })
      )
    )
  })
})

const snapshots = Snapshots.of(Simulated)

interface RouteMatch {
  /** What the body is read as. */
  readonly routeId: RouteId | undefined
  readonly route: PolicyRoute
  readonly provider: Provider
  /** The path there. */
  readonly target: string
  readonly service: AskedService | undefined
  /** The model that is asked about. */
  readonly model?: string
}

/** A service by its name, and what the registry has of it. */
interface AskedService {
  readonly name: string
  readonly call: ServiceCall.ServiceCall | undefined
  readonly closed: ServiceCall.Closed | undefined
}

const routeOf = (
  method: string,
  target: string,
  registry: ServiceTable.ServiceTable,
  compatPaths: ReadonlyArray<string>
): RouteMatch | undefined => {
  const canonical = Path.canonicalise(target)
  if (Result.isFailure(canonical)) return undefined
  const path = canonical.success
  const registered = (found: ServiceCall.Found, name: string): RouteMatch => ({
    routeId: undefined,
    route: RouteTable.serviceRoute(path.path),
    provider: "internal-service",
    target,
    service: { name: found.call?.service.name ?? name, call: found.call, closed: found.closed }
  })
  const match = RouteTable.match(method, path)
  switch (match._tag) {
    case "Canonical":
      return { routeId: match.route.id, route: match.route.pattern, provider: "upstream", target, service: undefined }
    case "Compat":
      if (!CompatPaths.isOpen(compatPaths, match.rest)) return undefined
      return {
        routeId: match.like?.id,
        route: "/providers/compat/*",
        provider: "compat",
        target: match.rest,
        service: undefined
      }
    case "Service":
      return registered(
        ServiceCall.byPattern(registry, method, path) ?? ServiceCall.byName(registry, method, path, match.name),
        match.name
      )
    case "Control":
      return undefined
    case "Unrouted": {
      const found = ServiceCall.byPattern(registry, method, path)
      if (found !== undefined) return registered(found, "")
      const model = RouteTable.modelOf(method, path)
      if (model === undefined) return undefined
      return { routeId: "models", route: "/v1/models", provider: "upstream", target, service: undefined, model }
    }
  }
}

const reservedFor = ({ method, path, service: { pricing } }: ServiceCall.ServiceCall, body: unknown): number => {
  const price = ServicePricing.resolve(pricing, method, path, ServicePricing.selectJson(body))
  return ServicePricing.reservation(pricing, method, path, price).nanos
}

/** A service takes any JSON; what is no object only has a size. */
const factsOf = (
  { routeId, service }: RouteMatch,
  text: Uint8Array,
  body: Schema.Json = null
): Result.Result<Facts.Facts, Facts.BodyProblem> =>
  service !== undefined && !Predicate.isObject(body)
    ? Result.succeed(Facts.sized(Facts.estimateInput(body, "anywhere")))
    : Result.map(Facts.parse(routeId ?? (service === undefined ? "compat" : "service"), text), ({ facts }) => facts)

/** An unused key is disabled at its next use, which this would have been. */
const keyRefusal = (
  key: Parameters<typeof unusable>[0],
  { policy }: EffectivePolicy.EffectivePolicy,
  now: number
): FinalDecision | undefined => {
  const code = unusable(key, now) ?? (overdue(key, policy, now) === undefined ? undefined : "disabled_virtual_key")
  return code === undefined ? undefined : refused(code, refusals[code])
}

/** The body is refused while it comes, before anything in it is known: by the layer whose limit is the strictest. */
const oversized = (limit: BodyLimit, { layers }: EffectivePolicy.EffectivePolicy): FinalDecision => ({
  ...refused("request_body_too_large", tooLarge(limit)),
  check: "request_bytes",
  layers:
    limit.setBy === "this key's policy"
      ? layers.filter(({ policy }) => policy.max_request_body_bytes === limit.bytes).map(nameOf)
      : []
})

const routeBounded = (
  decision: FinalDecision,
  { responseBytes = 0 }: Policy.Question,
  limit: BodyLimit
): FinalDecision =>
  decision === allowed && responseBytes > limit.bytes
    ? refused("response_body_too_large", answerTooLarge(limit))
    : decision

const guarded = (decision: FinalDecision, selected: Selection.Selected): FinalDecision =>
  decision === allowed && Result.isFailure(selected)
    ? refused(selected.failure.code, selected.failure.message)
    : decision

const unguarded: Selection.Selected = Result.succeed([])

/** Reference §2.6: lists that leave out what is asked for, and lists of layers that leave nothing together. */
const warningsOf = (
  { layers, policy }: EffectivePolicy.EffectivePolicy,
  { facts, provider, route, service }: Policy.Question
): ReadonlyArray<string> => {
  const excluded = <A>(name: string, list: AllowList<A>, values: ReadonlyArray<A>, allowed = allows<A>) =>
    values
      .filter((value) => !allowed(list, value))
      .map((value) => `Effective ${name} allowlist excludes ${value}; inherited allowlists intersect restrictively.`)
  return [
    ...excluded("route", policy.allowed_routes, [route]),
    ...excluded("provider", policy.allowed_providers, [provider]),
    ...excluded("model", policy.allowed_models, Facts.everyModel(facts), allowsModel),
    ...excluded("service", policy.allowed_services, [service?.name ?? facts.service ?? []].flat()),
    ...Policy.disjoint(policy, layers).map(
      ({ layers, list }) => `${list} of ${layers.map(nameOf).join(" and ")} have nothing in common.`
    )
  ]
}
