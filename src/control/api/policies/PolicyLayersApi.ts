import { Schema, Struct } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { GuardrailPolicy, GuardrailPolicyPatch } from "../../../policy/GuardrailPolicy.ts"
import { KeyPolicy, KeyPolicyInput } from "../../../policy/KeyPolicy.ts"
import { LayerKind } from "../../../policy/PolicyLayer.ts"
import { SharedLimits, SharedLimitsPatch } from "../../../policy/SharedLimits.ts"
import { refusals } from "../schema/Errors.ts"
import { bodyExample } from "../schema/Examples.ts"
import {
  Cursor,
  expectedUpdate,
  expectedUpdateOrNull,
  Id,
  NextCursor,
  PageLimit,
  timestamps
} from "../schema/Fields.ts"
import { requires, skipsUnreadable } from "../schema/Security.ts"

/** A policy for all keys, for the keys of a project or team, or for the requests to a route or for a model. */
export const PolicyLayer = Schema.Struct({
  id: Id,
  kind: LayerKind,
  /** The id of a project, the name of a team or model, or a route. It is `null` for the global layer. */
  scope_id: Schema.NullOr(Schema.String),
  /** The name of the project of a layer for a project. Other layers have none. */
  project_name: Schema.NullOr(Schema.String),
  /** A layer that is not enabled keeps its settings and restricts nothing. */
  enabled: Schema.Boolean,
  policy: KeyPolicy.pipe(Schema.fieldsAssign({ policy_version: Schema.Int })),
  shared: SharedLimits,
  guardrail_policy: GuardrailPolicy,
  ...timestamps
}).annotate({ identifier: "PolicyLayer" })
export type PolicyLayer = typeof PolicyLayer.Type

export const LayerScopeId = Schema.String.check(Schema.isPattern(/^[^\p{Cc}]{1,256}$/u))

const Shared = SharedLimitsPatch.annotate({
  description:
    "Limits that all requests under the layer share, regardless of their keys. (The limits in policy apply to each key separately.)"
})

/**
 * There is at most one layer for each kind and scope. A policy in the request replaces the whole stored policy. An
 * absent policy keeps the stored policy. Both rules also apply to `shared`.
 */
export const PolicyLayerUpsert = Schema.Struct({
  kind: LayerKind,
  scope_id: Schema.optionalKey(Schema.NullOr(LayerScopeId)),
  /** A new layer is enabled unless this is false. */
  enabled: Schema.optionalKey(Schema.Boolean),
  policy: Schema.optionalKey(Schema.NullOr(KeyPolicyInput)),
  shared: Schema.optionalKey(Schema.NullOr(Shared)),
  guardrail_policy: Schema.optionalKey(Schema.NullOr(GuardrailPolicyPatch))
})
export type PolicyLayerUpsert = typeof PolicyLayerUpsert.Type

/** With `expected_updated_at: null` it makes a layer and replaces none. */
export const PolicyLayerWrite = PolicyLayerUpsert.pipe(Schema.fieldsAssign(expectedUpdateOrNull))
export type PolicyLayerWrite = typeof PolicyLayerWrite.Type

/** Present fields replace the stored fields. Absent fields stay unchanged. `null` resets all fields of an object. */
export const PolicyLayerPatch = PolicyLayerUpsert.mapFields(Struct.omit(["kind", "scope_id"])).pipe(
  Schema.fieldsAssign(expectedUpdate)
)
export type PolicyLayerPatch = typeof PolicyLayerPatch.Type

const params = { id: Id }

export const PolicyLayersApi = HttpApiGroup.make("policy-layers")
  .annotate(
    OpenApi.Description,
    "Policies that apply in addition to those of keys: global, for a project, a team, a route or a model."
  )
  .add(
    HttpApiEndpoint.get("list", "/", {
      query: {
        kind: Schema.optionalKey(LayerKind),
        scope_id: Schema.optionalKey(LayerScopeId),
        limit: Schema.optionalKey(PageLimit),
        cursor: Schema.optionalKey(Cursor)
      },
      success: HttpApiSchema.WithHeaders(Schema.Array(PolicyLayer), NextCursor)
    })
      .annotate(OpenApi.Summary, "List policy layers")
      .annotateMerge(skipsUnreadable),
    HttpApiEndpoint.post("upsert", "/", {
      payload: PolicyLayerWrite,
      success: PolicyLayer,
      error: refusals(
        "invalid_policy_payload",
        "missing_project",
        "invalid_guardrail_request",
        "guardrail_forbidden",
        "changed_since_read"
      )
    })
      .annotate(OpenApi.Summary, "Set a policy layer")
      .annotate(
        OpenApi.Description,
        "Each kind and scope has one layer. Fields that a new layer omits restrict nothing. A given policy replaces the whole stored policy. Use PATCH to change single fields. `expected_updated_at: null` refuses to replace a layer that exists."
      )
      .annotateMerge(
        bodyExample({
          kind: "team",
          scope_id: "blue",
          policy: { allowed_models: ["gpt-5*", "claude-*"] },
          shared: { monthly_budget_usd: 50 }
        })
      ),
    HttpApiEndpoint.patch("update", "/:id", {
      params,
      payload: PolicyLayerPatch,
      success: PolicyLayer,
      error: refusals("invalid_guardrail_request", "guardrail_forbidden", "changed_since_read")
    })
      .annotate(OpenApi.Summary, "Change a policy layer")
      .annotate(
        OpenApi.Description,
        "The fields named in `policy`, `shared` and `guardrail_policy` are replaced; other fields stay unchanged."
      ),
    HttpApiEndpoint.get("get", "/:id", { params, success: PolicyLayer }).annotate(
      OpenApi.Summary,
      "Show a policy layer"
    ),
    HttpApiEndpoint.delete("remove", "/:id", { params, success: HttpApiSchema.NoContent }).annotate(
      OpenApi.Summary,
      "Delete a policy layer"
    )
  )
  .annotateEndpointsMerge(requires("policies:update"))
  .prefix("/policy-layers")
