import { Clock, Context, DateTime, Effect, Layer, Schema } from "effect"
import * as EffectivePolicy from "../../policy/EffectivePolicy.ts"
import * as Estimate from "../../policy/Estimate.ts"
import * as Facts from "../../policy/facts/Facts.ts"
import * as NamedModels from "../../policy/facts/NamedModels.ts"
import type { KeyPolicy } from "../../policy/KeyPolicy.ts"
import * as LimitRaise from "../../policy/LimitRaise.ts"
import * as Policy from "../../policy/Policy.ts"
import { applicableLayers, type LayerScope, type PolicyLayers } from "../../policy/PolicyLayer.ts"
import type { PriceList } from "../../policy/PriceList.ts"
import { byPolicy } from "../../policy/Refusals.ts"
import { providerOf } from "../../policy/Routing.ts"
import { canonicalRoutes, PolicyRoute } from "../../policy/routes/CanonicalRoute.ts"
import { Database } from "../../services/Database.ts"
import * as LimitScopes from "../../state/limits/LimitScopes.ts"
import * as Meters from "../../state/limits/Meters.ts"
import * as StoredKeys from "../../state/StoredKeys.ts"
import { AppliedRaise } from "../api/limits/LimitRaises.ts"
import type { Explanation, FinalDecision } from "../api/policies/PolicyApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { Count, computedRows, type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"
import * as CheckResults from "./CheckResults.ts"
import * as LimitCheck from "./LimitCheck.ts"
import { limitOfCheck } from "./LimitSentences.ts"
import {
  appliedLayer,
  appliedRaise,
  decisionByLimits,
  denialReasons,
  refusedDecision,
  sharedLimits
} from "./PolicyReasons.ts"
import * as PolicyState from "./PolicyState.ts"
import { sentenceOf } from "./RefusalSentences.ts"
import { StoredDenial } from "./StoredDenial.ts"

/** Explains the decision on a past request from its usage record. Also returns the decision under today's policies. */
export class PolicyExplanations extends Context.Service<
  PolicyExplanations,
  { readonly explain: (requestId: string) => Effect.Effect<Explanation, Refused<"not_found"> | StoreFailure> }
>()("svc/control/PolicyExplanations") {
  static readonly layer = Layer.suspend(() => Layer.effect(PolicyExplanations, make))
}

const maxChanges = 50
const maxRaises = 20

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const state = PolicyState.make(sql)
  const checkLimits = yield* LimitCheck.make

  /** Finds later audit events about the policy of the request's key and about policy layers of the request. */
  const changesSince = (record: typeof Row.Type, scope: LayerScope) =>
    changeRows.all(sql`SELECT created_at, action, target_type, target_id, actor_token_id FROM audit_events
      WHERE created_at > ${DateTime.toDateUtc(record.created_at)} AND ${sql.or([
        sql`(target_type = 'key' AND target_id = ${record.key_id} AND ${sql.or(
          ["policy", "guardrail_policy", "project_id", "team_id", "disabled", "revoked_at", "expires_at"].map(
            (field) => sql`before_json->>${field}::text IS DISTINCT FROM after_json->>${field}::text`
          )
        )})`,
        sql`(target_type = 'key' AND target_id = ${record.key_id} AND action IN ('limits:raise', 'limits:grant_raise', 'limits:end_raise'))`,
        // A layer that cannot be decoded has an unknown scope, so its change may concern this request.
        sql`(target_type = 'policy_layer' AND before_json->>'unreadable' = 'true')`,
        sql`(target_type = 'policy_layer' AND (
          coalesce(after_json, before_json)->>'kind', coalesce(coalesce(after_json, before_json)->>'scope_id', '')) IN (
            SELECT * FROM unnest(${layerScopes(scope).map(([kind]) => kind)}::text[], ${layerScopes(scope).map(([, id]) => id)}::text[])))`
      ])} ORDER BY created_at DESC, id DESC LIMIT ${maxChanges}`)

  const limitsNow = (
    record: typeof Row.Type,
    route: PolicyRoute,
    layers: PolicyLayers,
    key: StoredKeys.StoredKey,
    effective: EffectivePolicy.EffectivePolicy,
    now: number
  ) => {
    const meters = Meters.of(LimitScopes.of(layers, key, effective), DateTime.makeUnsafe(now))
    return checkLimits(meters, leastWanted(record, route), effective, now)
  }

  const raisesAt = ({ created_at, key_id }: typeof Row.Type) =>
    raiseRows.all(sql`SELECT id, limits, until FROM limit_raises WHERE key_id = ${key_id}
      AND created_at <= ${DateTime.toDateUtc(created_at)}
      AND least(until, coalesce(ended_at, 'infinity')) > ${DateTime.toDateUtc(created_at)}
      ORDER BY created_at, id LIMIT ${maxRaises}`)

  const explain = Effect.fn("PolicyExplanations.explain")(function* (requestId: string) {
    // Clients may use a request id twice. The latest record counts.
    const record =
      yield* records.first(sql`SELECT id, created_at, request_id, key_id, project_id, route, provider, model,
      status_code, error_code, streamed, tools, estimated_input_tokens, policy_version, denial, service_name
      FROM usage_events WHERE request_id = ${requestId} ORDER BY created_at DESC, id DESC LIMIT 1`)
    if (record === undefined) {
      return yield* new ControlError("not_found", "There is no usage record of this request.")
    }
    const { created_at, id, key_id, model, project_id, provider, request_id, route } = record
    const key = yield* state.key(key_id)
    const scope: Scope | undefined = isPolicyRoute(route)
      ? { ...(key === undefined ? noOwner : StoredKeys.ownerOf(key)), route, models: model === null ? [] : [model] }
      : undefined
    const layers = yield* state.layers
    const now = yield* Clock.currentTimeMillis
    const current =
      scope === undefined || key === undefined
        ? undefined
        : currentDecision(record, scope, applicableLayers(layers, scope), key, yield* state.prices(scope.models), now)
    const policyChanges = scope === undefined ? [] : yield* changesSince(record, scope)
    const explained: Explanation = {
      request_id,
      id,
      created_at,
      key_id,
      project_id,
      route,
      provider,
      model,
      decided: {
        allowed: wasForwarded(record.error_code),
        status_code: record.status_code,
        error_code: record.error_code,
        sentence:
          sentenceOf({
            check: record.denial?.check ?? null,
            amounts: record.denial?.amounts,
            errorCode: record.error_code,
            statusCode: record.status_code,
            isOfService: record.service_name !== null
          })?.sentence ?? null,
        check: record.denial?.check ?? null,
        layer: record.denial?.layer ?? null,
        policy_version: record.policy_version,
        checks: CheckResults.ofRecord({
          check: record.denial?.check ?? null,
          wasForwarded: wasForwarded(record.error_code),
          hasReadBody: hasReadBody(record)
        }),
        limit_raises: yield* raisesAt(record)
      },
      now:
        current === undefined || scope === undefined || key === undefined
          ? null
          : shownNow(
              current,
              current.refused ??
                decisionByLimits(yield* limitsNow(record, scope.route, layers, key, current.effective, now))
            ),
      policy_changed: policyChanges.length > 0,
      changes: policyChanges
    }
    return explained
  }, toStoreFailures)

  return PolicyExplanations.of({ explain })
})

const noOwner = { projectId: undefined, teamId: undefined }

type Scope = LayerScope & { readonly route: PolicyRoute }

const currentDecision = (
  record: typeof Row.Type,
  { models, route }: Scope,
  layers: EffectivePolicy.EffectivePolicy["layers"],
  key: StoredKeys.StoredKey,
  prices: PriceList,
  now: number
) => {
  const effective = EffectivePolicy.of([...layers, key.ownLayer], LimitRaise.inForce(key.raises, now))
  const facts = factsOf(record, route, models)
  const request: Policy.PolicyRequest = {
    route,
    // The record names the provider that responded. After a fallback, this is not the requested provider.
    provider: providerOf(route),
    service: record.service_name === null ? undefined : { name: record.service_name, linked: key.services },
    worksLater: false,
    facts,
    requestBytes: 0,
    responseBytes: undefined,
    hourUtc: DateTime.toDateUtc(record.created_at).getUTCHours(),
    running: 1,
    estimatedCostNanos: 0,
    unpricedModels: Estimate.unpricedModels(accountingOf(record, route), facts, prices)
  }
  const refusal = byPolicy(effective, request)
  const shown = {
    policy_version: effective.version,
    applied_layers: effective.layers.map(appliedLayer),
    shared_limits: sharedLimits(effective),
    limit_raises: effective.raises.map(appliedRaise),
    reasons: denialReasons(effective, request),
    unchecked:
      route === "/upstream/*"
        ? uncheckedAtWildcard(effective.policy)
        : uncheckedFromRecord(effective.policy, record, accountingOf(record, route))
  }
  return { shown, effective, refused: refusal && refusedDecision(refusal) }
}

const shownNow = ({ shown }: ReturnType<typeof currentDecision>, decision: FinalDecision) => ({
  ...shown,
  checks: CheckResults.ofDecision(decision.check, shown.unchecked),
  decision
})

/**
 * Returns what the request would need again, as far as its record says. If a limit refused it, the record has the amount
 * that did not fit. Otherwise the output is not known, so that the least that it can need decides.
 */
const leastWanted = (record: typeof Row.Type, route: PolicyRoute): Estimate.UsageEstimate => {
  const { denial, estimated_input_tokens } = record
  if (denial?.amounts === undefined && accountingOf(record, route) === "free") return Estimate.requestOnly
  const input = estimated_input_tokens ?? 0
  const { check = "", amounts } = denial ?? {}
  const wanted = amounts?.wanted ?? 0
  const unit = limitOfCheck(check)?.kind
  return {
    inputTokens: input,
    tokens: Math.max(input, unit === "tokens" ? wanted : 0),
    nanos: Math.max(1, unit === "money" ? wanted : 0),
    nanosEstimated: true
  }
}

const canonicalAt = (route: PolicyRoute) => canonicalRoutes.find(({ pattern }) => pattern === route)?.id

/** The gateway records the model and a token estimate only if it read the request body. */
const hasReadBody = ({ estimated_input_tokens, model }: typeof Row.Type): boolean =>
  model !== null || estimated_input_tokens !== null

const factsOf = (record: typeof Row.Type, route: PolicyRoute, models: ReadonlyArray<string>): Facts.Facts => {
  const id = canonicalAt(route)
  return {
    ...Facts.noFacts,
    models,
    omitsModel: models.length === 0 && hasReadBody(record) && id !== undefined && NamedModels.modelRoutes.has(id),
    stream: record.streamed,
    tools: record.tools ?? false,
    inputTokens: record.estimated_input_tokens ?? 0
  }
}

/** Only model requests have an estimated cost. Services have their own prices. Other requests have no price. */
const accountingOf = (record: typeof Row.Type, route: PolicyRoute): Estimate.Accounting => {
  const id = canonicalAt(route)
  if (id !== undefined && hasReadBody(record)) return Estimate.accountingOf(id, "POST", "managed_by_gateway")
  return route === "/providers/compat/*" && hasReadBody(record) ? "answer" : "free"
}

/** Requests that match no route have no parsed body, so the explanation skips checks that need the body. */
const uncheckedAtWildcard = (policy: KeyPolicy): ReadonlyArray<Policy.Check> => [
  ...(Policy.limitOfLaterWork(policy) !== undefined ? (["later_work"] as const) : []),
  ...Policy.bodyChecks(policy),
  ...(policy.max_request_body_bytes !== null ? (["request_bytes"] as const) : []),
  ...(policy.max_response_body_bytes !== null ? (["response_bytes"] as const) : [])
]

/**
 * Returns the checks that the explanation skips, because the usage record lacks their input. The record has no
 * concurrent requests, tool details or output limit. It names only one model, even if the request named several.
 */
const uncheckedFromRecord = (
  policy: KeyPolicy,
  { route, service_name, tools }: typeof Row.Type,
  accounting: Estimate.Accounting
): ReadonlyArray<Policy.Check> => [
  ...(route === "/providers/compat/*" && Policy.limitOfLaterWork(policy) !== undefined
    ? (["later_work"] as const)
    : []),
  ...(policy.allowed_models._tag === "Allow" ? (["model"] as const) : []),
  ...(policy.allowed_services._tag === "Allow" && service_name === null ? (["service"] as const) : []),
  ...(policy.unpriced_models === "refuse" && accounting !== "free" ? (["price"] as const) : []),
  ...(policy.max_concurrent_requests._tag === "Limited" ? (["concurrency"] as const) : []),
  ...(tools === true && policy.max_tool_call_count._tag === "Limited" ? (["tool_count"] as const) : []),
  ...(tools === true && policy.max_tool_schema_bytes._tag === "Limited" ? (["tool_schema"] as const) : []),
  ...(policy.max_request_body_bytes !== null ? (["request_bytes"] as const) : []),
  ...(policy.max_response_body_bytes !== null ? (["response_bytes"] as const) : []),
  ...(policy.max_output_tokens_per_request._tag === "Limited" ? (["output_tokens"] as const) : []),
  ...(policy.max_cost_per_request._tag === "Limited" ? (["cost"] as const) : [])
]

/** These errors occur after the policy allowed the request. The upstream failed, or its response was too large. */
const wasForwarded = (errorCode: string | null): boolean =>
  errorCode === null || errorCode.startsWith("upstream_") || errorCode === "response_body_too_large"

const layerScopes = ({
  models,
  projectId,
  route,
  teamId
}: LayerScope): ReadonlyArray<readonly [kind: string, id: string]> => [
  ["global", ""],
  ...(projectId === undefined ? [] : [["project", projectId] as const]),
  ...(teamId === undefined ? [] : [["team", teamId] as const]),
  ["route", route],
  ...models.map((model) => ["model", model] as const)
]

const isPolicyRoute = Schema.is(PolicyRoute)

const Row = Schema.Struct({
  id: Schema.String,
  created_at: Schema.DateTimeUtcFromDate,
  request_id: Schema.String,
  key_id: Schema.String,
  project_id: Schema.NullOr(Schema.String),
  route: Schema.String,
  provider: Schema.String,
  model: Schema.NullOr(Schema.String),
  status_code: Schema.Int,
  error_code: Schema.NullOr(Schema.String),
  streamed: Schema.Boolean,
  tools: Schema.NullOr(Schema.Boolean),
  estimated_input_tokens: Schema.NullOr(Count),
  policy_version: Schema.NullOr(Count),
  denial: Schema.NullOr(StoredDenial),
  service_name: Schema.NullOr(Schema.String)
})
const records = storedRows(Row, { table: "usage_events", key: ["id"] })

const raiseRows = computedRows(AppliedRaise.pipe(Schema.fieldsAssign({ until: Schema.DateTimeUtcFromDate })))

const changeRows = computedRows(
  Schema.Struct({
    created_at: Schema.DateTimeUtcFromDate,
    action: Schema.String,
    target_type: Schema.String,
    target_id: Schema.String,
    actor_token_id: Schema.NullOr(Schema.String)
  })
)
