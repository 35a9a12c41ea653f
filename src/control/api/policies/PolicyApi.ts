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
import { refusals } from "../schema/Errors.ts"
import { bodyExample } from "../schema/Examples.ts"
import { Id, Timestamp } from "../schema/Fields.ts"
import { requires } from "../schema/Security.ts"

const orNull = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))
const Amount = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))

/**
 * A request that nobody makes. Without a key it is decided by the preset and policy that are given alone; with one they
 * go over the key's own policy (a preset replaces it). What is not said is not looked at: without a body, no model.
 */
export const Simulation = Schema.Struct({
  key_id: orNull(Id),
  /** In place of the key's. */
  team_id: orNull(TeamId),
  /** With its query, as a client writes it. */
  path: Schema.String.check(Schema.isBetweenLength(1, 8192)),
  method: orNull(Schema.Literals(["GET", "POST", "PUT", "PATCH", "DELETE"])),
  /** In place of the one that the path leads to; so is the service. */
  provider: orNull(Provider),
  service_name: orNull(ServiceName),
  body: Schema.optionalKey(Schema.Json),
  /** In place of the length of `body`. */
  request_body_bytes: orNull(Amount),
  response_body_bytes: orNull(Amount),
  /** In place of the estimate from the body and the prices. */
  estimated_cost_usd: orNull(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 9_000_000 }))),
  preset: orNull(KeyPreset),
  policy: orNull(KeyPolicyInput),
  guardrail_policy: orNull(GuardrailPolicyPatch)
})
export type Simulation = typeof Simulation.Type

/** A policy that a request is under. The last is the key's own. */
const layer = {
  kind: Schema.Literals([...LayerKind.literals, "key", "unknown"]),
  scope_id: Schema.NullOr(Schema.String),
  policy_version: Schema.Int
}
const AppliedLayer = Schema.Struct(layer)

/** What one layer alone has against the request: nothing, or each check that fails. */
const LayerReason = Schema.Struct({
  ...layer,
  denies: Schema.Array(Schema.Struct({ check: Schema.String, code: Schema.String, message: Schema.String }))
})

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

/** The limits that the request shares with all others under the layer. */
const SharedByLayer = Schema.Struct({ layer: Schema.String, ...SharedLimits.fields })

export const FinalDecision = Schema.Struct({
  allowed: Schema.Boolean,
  error_code: Schema.NullOr(Schema.String),
  message: Schema.String,
  /** The check that decided, and the layers that deny by it: `global`, `project:<id>`, …, `key`. */
  check: Schema.NullOr(Schema.String),
  layers: Schema.Array(Schema.String)
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
  shared_limits: Schema.Array(SharedByLayer),
  reasons: Schema.Array(LayerReason),
  final_decision: FinalDecision
})
export type SimulationResult = typeof SimulationResult.Type

/** A past request: what was decided then, and what would be now. */
export const Explanation = Schema.Struct({
  request_id: Schema.String,
  /** Of its usage record. */
  id: Id,
  created_at: Timestamp,
  key_id: Id,
  project_id: Schema.NullOr(Id),
  route: Schema.String,
  provider: Schema.String,
  model: Schema.NullOr(Schema.String),
  decided: Schema.Struct({
    /** The gateway sent it on. */
    allowed: Schema.Boolean,
    status_code: Schema.Int,
    error_code: Schema.NullOr(Schema.String),
    check: Schema.NullOr(Schema.String),
    layer: Schema.NullOr(Schema.String),
    policy_version: Schema.NullOr(Schema.Int)
  }),
  /** `null` where no policy applies: wildcard traffic. */
  now: Schema.NullOr(
    Schema.Struct({
      policy_version: Schema.Int,
      applied_layers: Schema.Array(AppliedLayer),
      shared_limits: Schema.Array(SharedByLayer),
      reasons: Schema.Array(LayerReason),
      decision: FinalDecision,
      /** Checks that the policy makes now, and whose facts are on no record: they may decide otherwise. */
      unchecked: Schema.Array(Schema.String)
    })
  ),
  policy_changed: Schema.Boolean,
  /** What was done since to the key and to the layers that it is under, newest first; at most 50. */
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

/** What a preset makes of a new key's policy. */
export const Preset = Schema.Struct({ name: KeyPreset, policy: KeyPolicy })

export const PolicyApi = HttpApiGroup.make("policy")
  .annotate(OpenApi.Description, "Why a request would be, or was, treated as it was.")
  .add(
    HttpApiEndpoint.post("simulate", "/simulate", {
      payload: Simulation,
      success: SimulationResult,
      error: refusals("unsupported_route", "invalid_guardrail_request", "guardrail_forbidden")
    })
      .annotateMerge(
        OpenApi.annotations({
          summary: "Say how a request would be treated",
          description: "By the evaluator of the request path. Sends nothing, counts nothing; a denial is an answer too."
        })
      )
      .annotateMerge(
        bodyExample({
          path: "/v1/chat/completions",
          body: { model: "gpt-5", messages: [{ role: "user", content: "hello" }] },
          preset: "developer"
        })
      )
      .annotateMerge(requires("policies:update")),
    HttpApiEndpoint.get("presets", "/presets", { success: Schema.Array(Preset) })
      .annotate(OpenApi.Summary, "Show what each preset makes of a new key's policy")
      .annotateMerge(requires("keys:create", "policies:update", "usage:read")),
    HttpApiEndpoint.get("explain", "/explain/:request_id", {
      params: { request_id: Schema.String.check(Schema.isBetweenLength(1, 256)) },
      success: Explanation
    })
      .annotateMerge(
        OpenApi.annotations({
          summary: "Say why a past request was treated as it was",
          description:
            "By its record and the audit log, a second or two after its end: what each layer said then, and what has changed since."
        })
      )
      .annotateMerge(requires("policies:update", "usage:read"))
  )
  .prefix("/policy")
