import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { GuardrailPolicyPatch } from "../../../policy/GuardrailPolicy.ts"
import { KeyPolicy, KeyPolicyInput } from "../../../policy/KeyPolicy.ts"
import { KeyPreset } from "../../../policy/KeyPreset.ts"
import { LayerKind } from "../../../policy/PolicyLayer.ts"
import { PolicyRoute, Provider } from "../../../policy/routes/CanonicalRoute.ts"
import { ServiceName } from "../../../policy/routes/Service.ts"
import { SharedLimits } from "../../../policy/SharedLimits.ts"
import { TeamId } from "../keys/KeysApi.ts"
import { AppliedRaise } from "../limits/LimitRaises.ts"
import { refusals } from "../schema/Errors.ts"
import { bodyExample } from "../schema/Examples.ts"
import { Id, Timestamp } from "../schema/Fields.ts"
import { operation } from "../schema/Security.ts"
import {
  EffectivePolicyQuery,
  PolicyFields,
  PolicyImpact,
  PolicyProposal,
  ShownEffectivePolicy
} from "./EffectivePolicies.ts"
import { PolicyLayerUpsert } from "./PolicyLayersApi.ts"

const orNull = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))
const Amount = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))

/**
 * A hypothetical request. Without `key_id`, only `preset` and `policy` decide. With `key_id`, a preset replaces the
 * key's policy, and fields of `policy` override its fields. A check is skipped if the simulation omits its input.
 */
export const Simulation = Schema.Struct({
  key_id: orNull(Id),
  team_id: orNull(TeamId),
  /** The path with its query string, as a client sends it. */
  path: Schema.String.check(Schema.isBetweenLength(1, 8192)),
  method: orNull(Schema.Literals(["GET", "POST", "PUT", "PATCH", "DELETE"])),
  /** `provider` and `service_name` override the provider and service that the path selects. */
  provider: orNull(Provider),
  service_name: orNull(ServiceName),
  body: Schema.optionalKey(Schema.Json),
  request_body_bytes: orNull(Amount),
  response_body_bytes: orNull(Amount),
  /** Overrides the cost that is estimated from the body and the model's price. */
  estimated_cost_usd: orNull(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 9_000_000 }))),
  preset: orNull(KeyPreset),
  policy: orNull(KeyPolicyInput),
  guardrail_policy: orNull(GuardrailPolicyPatch),
  /** Decides as if this layer were set. With `enabled: false`, as if it were removed. */
  layer: orNull(PolicyLayerUpsert)
})
export type Simulation = typeof Simulation.Type

/** A policy layer that applies to the request. The last layer in a list is the key's own policy. */
const layer = {
  kind: Schema.Literals([...LayerKind.literals, "key", "unknown"]),
  scope_id: Schema.NullOr(Schema.String),
  policy_version: Schema.Int
}
const AppliedLayer = Schema.Struct(layer)

const LayerReason = Schema.Struct({
  ...layer,
  denies: Schema.Array(Schema.Struct({ check: Schema.String, code: Schema.String, message: Schema.String }))
})

/** The result of a check, in the order in which the gateway runs them. They stop at the first that refuses. */
const CheckResult = Schema.Struct({
  check: Schema.String,
  /** `unchecked`: the usage record lacks what the check needs. */
  result: Schema.Literals(["passed", "refused", "unchecked"])
})
export type CheckResult = typeof CheckResult.Type

const {
  allowed_models,
  allowed_providers,
  allowed_routes,
  allowed_services,
  daily_budget_usd,
  deny,
  max_cost_per_request,
  max_requests_per_day,
  max_tokens_per_day,
  monthly_budget_usd,
  rpm_limit,
  tpm_limit
} = KeyPolicy.fields

const SharedByLayer = Schema.Struct({ layer: Schema.String, ...SharedLimits.fields })

export const FinalDecision = Schema.Struct({
  allowed: Schema.Boolean,
  error_code: Schema.NullOr(Schema.String),
  message: Schema.String,
  /** The check that failed. `layers` lists the policies that fail this check: `global`, `project:<id>`, …, `key`. */
  check: Schema.NullOr(Schema.String),
  layers: Schema.Array(Schema.String),
  /** True if the decision includes how far rate limits and budgets are used now. It takes a key, and Redis. */
  limits_checked: Schema.Boolean
})
export type FinalDecision = typeof FinalDecision.Type

export const SimulationResult = Schema.Struct({
  auth: Schema.Struct({ key_id: Schema.NullOr(Id), source: Schema.Literals(["stored_key", "default_policy"]) }),
  route_match: Schema.Struct({ route: PolicyRoute, provider: Provider, service_name: Schema.NullOr(Schema.String) }),
  policy_merge: Schema.Struct({
    policy_version: Schema.Int,
    deny,
    allowed_routes,
    allowed_models,
    allowed_providers,
    allowed_services,
    applied_layers: Schema.Array(AppliedLayer)
  }),
  warnings: Schema.Array(Schema.String),
  guardrail_plan: Schema.Array(Schema.String),
  rate_limit_projection: Schema.Struct({ rpm_limit, tpm_limit, max_requests_per_day, max_tokens_per_day }),
  budget_projection: Schema.Struct({ daily_budget_usd, monthly_budget_usd, max_cost_per_request }),
  /** All fields of the policy that decides. */
  effective_policy: KeyPolicy,
  shared_limits: Schema.Array(SharedByLayer),
  /** The exceptions of the key, which the projections include. */
  limit_raises: Schema.Array(AppliedRaise),
  reasons: Schema.Array(LayerReason),
  final_decision: FinalDecision
})
export type SimulationResult = typeof SimulationResult.Type

/** The decision on a past request, and the decision that the current policies would make. */
export const Explanation = Schema.Struct({
  request_id: Schema.String,
  id: Id,
  created_at: Timestamp,
  key_id: Id,
  project_id: Schema.NullOr(Id),
  route: Schema.String,
  provider: Schema.String,
  model: Schema.NullOr(Schema.String),
  decided: Schema.Struct({
    allowed: Schema.Boolean,
    status_code: Schema.Int,
    error_code: Schema.NullOr(Schema.String),
    /** Says in plain words why the request failed. `null` if it did not fail. */
    sentence: Schema.NullOr(Schema.String),
    check: Schema.NullOr(Schema.String),
    /** The layer that refused the request alone. The record names no layer that let it pass. */
    layer: Schema.NullOr(Schema.String),
    policy_version: Schema.NullOr(Schema.Int),
    /** As far as they follow from the record. Empty if the request was refused before or after the policy's checks. */
    checks: Schema.Array(CheckResult),
    /** The exceptions of the key that were in force. */
    limit_raises: Schema.Array(AppliedRaise)
  }),
  /** `null` if the request matched no route. No policy applies to such a request. */
  now: Schema.NullOr(
    Schema.Struct({
      policy_version: Schema.Int,
      applied_layers: Schema.Array(AppliedLayer),
      shared_limits: Schema.Array(SharedByLayer),
      limit_raises: Schema.Array(AppliedRaise),
      reasons: Schema.Array(LayerReason),
      checks: Schema.Array(CheckResult),
      decision: FinalDecision,
      /** The skipped checks, because the usage record lacks their input. They might change the decision. */
      unchecked: Schema.Array(Schema.String)
    })
  ),
  policy_changed: Schema.Boolean,
  /** The newest 50 changes of the key and of its policy layers since the request. */
  changes: Schema.Array(
    Schema.Struct({
      created_at: Timestamp,
      action: Schema.String,
      target_type: Schema.String,
      target_id: Schema.String,
      actor_token_id: Schema.NullOr(Id)
    })
  )
})
export type Explanation = typeof Explanation.Type

export const Preset = Schema.Struct({ name: KeyPreset, policy: KeyPolicy })

export const PolicyApi = HttpApiGroup.make("policy")
  .annotate(OpenApi.Description, "Explains the decision on a hypothetical or a past request.")
  .add(
    HttpApiEndpoint.post("simulate", "/simulate", {
      payload: Simulation,
      success: SimulationResult,
      error: refusals("unsupported_route", "invalid_guardrail_request", "guardrail_forbidden", "invalid_policy_payload")
    })
      .annotateMerge(operation("Show the decision on a hypothetical request", "policies:update"))
      .annotate(
        OpenApi.Description,
        "Decides as the gateway does, but sends nothing and counts nothing against limits. With `key_id` it reads how far the limits of the key are used now. The status is also 200 if the request would be denied."
      )
      .annotateMerge(
        bodyExample({
          path: "/v1/chat/completions",
          body: { model: "gpt-5", messages: [{ role: "user", content: "hello" }] },
          preset: "developer"
        })
      ),
    HttpApiEndpoint.get("fields", "/fields", { success: PolicyFields }).annotateMerge(
      operation("Describe the fields of policies", "keys:create", "policies:update", "operators:manage", "usage:read")
    ),
    HttpApiEndpoint.get("effective", "/effective", {
      query: EffectivePolicyQuery,
      success: ShownEffectivePolicy,
      error: refusals("missing_project")
    })
      .annotateMerge(
        operation("Show the policy in force, and which layers set it", "operators:manage", "policies:update")
      )
      .annotate(
        OpenApi.Description,
        "The policy of the requests of a key, or of those of a project or team; with `route` and `model`, of these requests alone. Each field has the layers that set it."
      ),
    HttpApiEndpoint.post("impact", "/impact", {
      payload: PolicyProposal,
      success: PolicyImpact,
      error: refusals("invalid_request", "invalid_policy_payload", "invalid_guardrail_request", "guardrail_forbidden")
    })
      .annotateMerge(operation("Show whom a change of a policy would hit", "policies:update"))
      .annotate(
        OpenApi.Description,
        "A dry run: changes nothing. Takes a policy layer, or the policy of a key, and returns for the keys under it what each would gain and lose. It looks at the keys that were used last."
      )
      .annotateMerge(
        bodyExample({
          layer: { kind: "team", scope_id: "blue", policy: { rpm_limit: 30, allowed_models: ["gpt-5*"] } }
        })
      ),
    HttpApiEndpoint.get("presets", "/presets", { success: Schema.Array(Preset) }).annotateMerge(
      operation("Show the policy that each preset gives to a new key", "keys:create", "policies:update", "usage:read")
    ),
    HttpApiEndpoint.get("explain", "/explain/:request_id", {
      params: { request_id: Schema.String.check(Schema.isBetweenLength(1, 256)) },
      success: Explanation
    })
      .annotateMerge(operation("Explain the decision on a past request", "policies:update", "usage:read"))
      .annotate(
        OpenApi.Description,
        "Uses the audit log and the usage record of the request. The usage record exists a second or two after the request ends. Returns the recorded decision, the current decision of each policy layer, and the changes in between."
      )
  )
  .prefix("/policy")
