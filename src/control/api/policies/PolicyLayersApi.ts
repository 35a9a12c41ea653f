import { Schema, Struct } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { GuardrailPolicy, GuardrailPolicyPatch } from "../../../policy/GuardrailPolicy.ts"
import { KeyPolicy, KeyPolicyInput } from "../../../policy/KeyPolicy.ts"
import { LayerKind } from "../../../policy/PolicyLayer.ts"
import { SharedLimits, SharedLimitsPatch } from "../../../policy/SharedLimits.ts"
import { refusals } from "../schema/Errors.ts"
import { bodyExample } from "../schema/Examples.ts"
import { Cursor, Id, NextCursor, PageLimit, timestamps } from "../schema/Fields.ts"
import { requires, skipsUnreadable } from "../schema/Security.ts"

/** What restricts every key, or those of a project or team, or every request to a route or for a model. */
export const PolicyLayer = Schema.Struct({
  id: Id,
  kind: LayerKind,
  /** The id of a project, the name of a team or model, or a route; `null` for the global layer. */
  scope_id: Schema.NullOr(Schema.String),
  policy: KeyPolicy.pipe(Schema.fieldsAssign({ policy_version: Schema.Int })),
  shared: SharedLimits,
  guardrail_policy: GuardrailPolicy,
  ...timestamps
}).annotate({ identifier: "PolicyLayer" })
export type PolicyLayer = typeof PolicyLayer.Type

export const LayerScopeId = Schema.String.check(Schema.isPattern(/^[^\p{Cc}]{1,256}$/u))

const Shared = SharedLimitsPatch.annotate({
  description:
    "Limits that all requests under the layer share, whichever keys they come with. (The limits in policy bound each key on its own.)"
})

/**
 * One layer for each kind and scope. A policy that is given is the whole of it: what it leaves out, or `null`, is
 * neutral. One that is absent stays as it was. So it is with the shared limits.
 */
export const PolicyLayerUpsert = Schema.Struct({
  kind: LayerKind,
  scope_id: Schema.optionalKey(Schema.NullOr(LayerScopeId)),
  policy: Schema.optionalKey(Schema.NullOr(KeyPolicyInput)),
  shared: Schema.optionalKey(Schema.NullOr(Shared)),
  guardrail_policy: Schema.optionalKey(Schema.NullOr(GuardrailPolicyPatch))
})
export type PolicyLayerUpsert = typeof PolicyLayerUpsert.Type

/** What is named is replaced, and what is not stays; `null` in place of an object takes all of it back. */
export const PolicyLayerPatch = PolicyLayerUpsert.mapFields(Struct.omit(["kind", "scope_id"]))
export type PolicyLayerPatch = typeof PolicyLayerPatch.Type

const params = { id: Id }

export const PolicyLayersApi = HttpApiGroup.make("policy-layers")
  .annotate(OpenApi.Description, "Policies above those of keys: for everything, a project, a team, a route or a model.")
  .add(
    HttpApiEndpoint.get("list", "/", {
      query: { limit: Schema.optionalKey(PageLimit), cursor: Schema.optionalKey(Cursor) },
      success: HttpApiSchema.WithHeaders(Schema.Array(PolicyLayer), NextCursor)
    })
      .annotate(OpenApi.Summary, "List policy layers")
      .annotateMerge(skipsUnreadable),
    HttpApiEndpoint.post("upsert", "/", {
      payload: PolicyLayerUpsert,
      success: PolicyLayer,
      error: refusals("invalid_policy_payload", "missing_project", "invalid_guardrail_request", "guardrail_forbidden")
    })
      .annotateMerge(
        OpenApi.annotations({
          summary: "Set a policy layer",
          description:
            "There is one layer for each kind and scope; a new one restricts nothing until a field says so. A policy replaces the one before as a whole: a PATCH changes single fields."
        })
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
      error: refusals("invalid_guardrail_request", "guardrail_forbidden")
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Change a policy layer",
        description: "What `policy`, `shared` and `guardrail_policy` name is replaced; what they leave out stays."
      })
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
