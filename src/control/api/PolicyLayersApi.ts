import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { GuardrailPolicy, GuardrailPolicyPatch } from "../../gateway/model/GuardrailPolicy.ts"
import { KeyPolicy, KeyPolicyPatch } from "../../gateway/model/KeyPolicy.ts"
import { LayerKind } from "../../gateway/model/PolicyLayer.ts"
import { refusals } from "./Errors.ts"
import { Cursor, Id, NextCursor, PageLimit, stamps } from "./Fields.ts"
import { requires } from "./Security.ts"

/** What restricts every key, or those of a project or team, or every request to a route or for a model. */
export const PolicyLayer = Schema.Struct({
  id: Id,
  kind: LayerKind,
  /** The id of a project, the name of a team or model, or a route; `null` for the global layer. */
  scope_id: Schema.NullOr(Schema.String),
  policy: KeyPolicy.pipe(Schema.fieldsAssign({ policy_version: Schema.Int })),
  guardrail_policy: GuardrailPolicy,
  ...stamps
})
export type PolicyLayer = typeof PolicyLayer.Type

export const LayerScopeId = Schema.String.check(Schema.isPattern(/^[^\p{Cc}]{1,256}$/u))

/**
 * One layer for each kind and scope. A policy that is given is the whole of it: what it leaves out, or `null`, is neutral.
 * One that is absent stays as it was.
 */
export const PolicyLayerUpsert = Schema.Struct({
  kind: LayerKind,
  scope_id: Schema.optionalKey(Schema.NullOr(LayerScopeId)),
  policy: Schema.optionalKey(Schema.NullOr(KeyPolicyPatch)),
  guardrail_policy: Schema.optionalKey(Schema.NullOr(GuardrailPolicyPatch))
})
export type PolicyLayerUpsert = typeof PolicyLayerUpsert.Type

export const PolicyLayersApi = HttpApiGroup.make("policy-layers")
  .add(
    HttpApiEndpoint.get("list", "/", {
      query: { limit: Schema.optionalKey(PageLimit), cursor: Schema.optionalKey(Cursor) },
      success: HttpApiSchema.WithHeaders(Schema.Array(PolicyLayer), NextCursor)
    }),
    HttpApiEndpoint.post("upsert", "/", {
      payload: PolicyLayerUpsert,
      success: PolicyLayer,
      error: refusals("invalid_policy_payload", "missing_project", "invalid_guardrail_request")
    }),
    HttpApiEndpoint.delete("remove", "/:id", { params: { id: Id }, success: HttpApiSchema.NoContent })
  )
  .annotateEndpointsMerge(requires("policies:update"))
  .prefix("/policy-layers")
