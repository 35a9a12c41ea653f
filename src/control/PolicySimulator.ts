import { Clock, Context, Effect, Layer, Result } from "effect"
import { type AllowList, allows } from "../gateway/model/AllowList.ts"
import { type BodyLimit, strictest, tooLarge } from "../gateway/model/BodyLimit.ts"
import type { PolicyRoute, Provider, RouteId } from "../gateway/model/CanonicalRoute.ts"
import * as EffectivePolicy from "../gateway/model/EffectivePolicy.ts"
import * as Estimate from "../gateway/model/Estimate.ts"
import * as Facts from "../gateway/model/Facts.ts"
import * as GuardrailPolicy from "../gateway/model/GuardrailPolicy.ts"
import { patched } from "../gateway/model/KeyPolicy.ts"
import { policyOf } from "../gateway/model/KeyPreset.ts"
import { overdue, refusals, unusable } from "../gateway/model/KeyState.ts"
import * as Path from "../gateway/model/Path.ts"
import * as Policy from "../gateway/model/Policy.ts"
import { nameOf, type PolicyLayer } from "../gateway/model/PolicyLayer.ts"
import { toNanos } from "../gateway/model/Price.ts"
import * as RouteTable from "../gateway/model/RouteTable.ts"
import type { Vault } from "../gateway/model/Vault.ts"
import * as Definitions from "../guardrails/Definitions.ts"
import * as Selection from "../guardrails/Selection.ts"
import { Database } from "../services/Database.ts"
import { type Actor, Audit, Snapshots } from "./Audit.ts"
import { ControlError, type Refused } from "./api/Errors.ts"
import { type FinalDecision, Simulated, type Simulation } from "./api/PolicyApi.ts"
import { guardrailsOf } from "./GuardrailNames.ts"
import { allowed, applied, decided, reasons, refused } from "./PolicyReasons.ts"
import * as PolicyState from "./PolicyState.ts"
import type { StoreFailure } from "./Store.ts"

type Refusal = Refused<"not_found" | "unsupported_route" | "invalid_guardrail_request">

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

/** The direct compatible upstream and services have no row of settings (reference §1.2). */
const unconfigured = {
  enabled: true,
  mode: "managed_by_gateway",
  max_request_body_bytes: 1_048_576,
  max_response_body_bytes: 1_048_576
} as const

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const state = PolicyState.make(sql)
  const definitions = Effect.provide(Definitions.load, yield* Effect.context<Database | Vault>())

  const evaluate = Effect.fnUntraced(function* (input: Simulation) {
    const method = input.method ?? "POST"
    const found = routeOf(method, input.path)
    if (found === undefined) {
      return yield* new ControlError("unsupported_route", "Route is not supported by this gateway.", { param: "path" })
    }
    const key = input.key_id == null ? undefined : yield* state.key(input.key_id)
    if (input.key_id != null && key === undefined) {
      return yield* new ControlError("not_found", "There is no key with this id.", { param: "key_id" })
    }
    const configured = found.provider === "upstream" ? found.routeId : undefined
    const settings = (configured === undefined ? undefined : yield* state.route(configured)) ?? unconfigured
    const provider = input.provider ?? found.provider
    const serviceName = input.service_name ?? found.serviceName

    const text = input.body === undefined || method !== "POST" ? undefined : Buffer.from(JSON.stringify(input.body))
    const read = text === undefined ? undefined : Facts.parse(found.routeId ?? "compat", text)
    const facts = read !== undefined && Result.isSuccess(read) ? read.success.facts : Facts.none

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
    const unread = yield* layersFor([])
    const effective = yield* layersFor(facts.models)

    const price = Estimate.priceOf(facts.models, yield* state.prices(facts.models))
    const accounting =
      found.routeId === undefined ? "answer" : Estimate.accountingOf(found.routeId, method, settings.mode)
    const now = yield* Clock.currentTimeMillis
    const question: Policy.Question = {
      route: found.route,
      provider,
      service: serviceName === undefined ? undefined : { name: serviceName, linked: key?.services ?? [] },
      facts,
      requestBytes: input.request_body_bytes ?? text?.length ?? 0,
      responseBytes: input.response_body_bytes ?? undefined,
      hourUtc: new Date(now).getUTCHours(),
      estimatedCostNanos:
        input.estimated_cost_usd == null
          ? Estimate.wanted(accounting, facts, price).nanos
          : toNanos(input.estimated_cost_usd)
    }

    const selected = Selection.forRequest(
      Selection.select(yield* definitions, effective.guardrails, facts.guardrails),
      facts.stream
    )
    const disabledBy = key === undefined ? undefined : keyRefusal(key.state, unread, now)
    const requestLimit = strictest(settings.max_request_body_bytes, unread.policy.max_request_body_bytes)
    const final: FinalDecision =
      disabledBy ??
      (settings.enabled ? undefined : refused("disabled_route", "Route is disabled by gateway policy.")) ??
      (question.requestBytes > requestLimit.bytes ? oversized(requestLimit, unread) : undefined) ??
      (read !== undefined && Result.isFailure(read) ? refused(read.failure.code, read.failure.message) : undefined) ??
      guarded(
        routeBounded(decided(effective, question), question, settings.max_response_body_bytes),
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
  readonly serviceName: string | undefined
}

const routeOf = (method: string, target: string): RouteMatch | undefined => {
  const path = Path.canonicalise(target)
  if (Result.isFailure(path)) return undefined
  const match = RouteTable.match(method, path.success)
  switch (match._tag) {
    case "Canonical":
      return { routeId: match.route.id, route: match.route.pattern, provider: "upstream", serviceName: undefined }
    case "Compat":
      return { routeId: match.like?.id, route: "/providers/compat/*", provider: "compat", serviceName: undefined }
    case "Service":
      return {
        routeId: undefined,
        route: RouteTable.serviceRoute(path.success.path),
        provider: "internal-service",
        serviceName: match.name
      }
    case "Control":
    case "Unrouted":
      return undefined
  }
}

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
    limit.setBy === "the route"
      ? []
      : layers.filter(({ policy }) => policy.max_request_body_bytes === limit.bytes).map(nameOf)
})

const routeBounded = (
  decision: FinalDecision,
  { responseBytes = 0 }: Policy.Question,
  mostResponseBytes: number
): FinalDecision =>
  decision === allowed && responseBytes > mostResponseBytes
    ? refused(
        "response_body_too_large",
        `The answer is larger than ${mostResponseBytes} bytes (max_response_body_bytes of the route). Ask for less, or ask an operator to raise that limit.`
      )
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
  const excluded = <A>(name: string, list: AllowList<A>, values: ReadonlyArray<A>) =>
    values
      .filter((value) => !allows(list, value))
      .map((value) => `Effective ${name} allowlist excludes ${value}; inherited allowlists intersect restrictively.`)
  return [
    ...excluded("route", policy.allowed_routes, [route]),
    ...excluded("provider", policy.allowed_providers, [provider]),
    ...excluded("model", policy.allowed_models, facts.models),
    ...excluded("service", policy.allowed_services, [service?.name ?? facts.service ?? []].flat()),
    ...Policy.disjoint(policy, layers).map(
      ({ layers, list }) => `${list} of ${layers.map(nameOf).join(" and ")} have nothing in common.`
    )
  ]
}
