import { Schema } from "effect"
import { GuardrailPolicy, GuardrailPolicyPatch } from "../../../policy/GuardrailPolicy.ts"
import { KeyPolicy, KeyPolicyInput } from "../../../policy/KeyPolicy.ts"
import { LayerKind } from "../../../policy/PolicyLayer.ts"
import { PolicyRoute } from "../../../policy/routes/CanonicalRoute.ts"
import { SharedLimits } from "../../../policy/SharedLimits.ts"
import { TeamId } from "../keys/KeysApi.ts"
import { AppliedRaise } from "../limits/LimitRaises.ts"
import { Id, Timestamp } from "../schema/Fields.ts"
import { PolicyLayerUpsert } from "./PolicyLayersApi.ts"

/** With `key_id`, the project and the team are those of the key. */
export const EffectivePolicyQuery = Schema.Struct({
  key_id: Schema.optionalKey(Id),
  project_id: Schema.optionalKey(Id),
  team_id: Schema.optionalKey(TeamId),
  route: Schema.optionalKey(PolicyRoute),
  model: Schema.optionalKey(Schema.String.check(Schema.isBetweenLength(1, 256)))
})
export type EffectivePolicyQuery = typeof EffectivePolicyQuery.Type

const NamedLayer = Schema.Struct({
  /** Such as `global`, `project:<id>` or `key`, as in usage records. */
  layer: Schema.String,
  kind: Schema.Literals([...LayerKind.literals, "key", "unknown"]),
  scope_id: Schema.NullOr(Schema.String),
  /** A name for people. */
  name: Schema.String,
  policy_version: Schema.Int,
  /** The limits that all keys under the layer share. */
  shared: Schema.NullOr(SharedLimits),
  guardrail_policy: GuardrailPolicy
})

/** What holds for requests, and which of the layers set it. */
export const ShownEffectivePolicy = Schema.Struct({
  /** From general to specific. The last one is the key's own policy. */
  layers: Schema.Array(NamedLayer),
  policy: KeyPolicy,
  fields: Schema.Array(
    Schema.Struct({
      field: Schema.String,
      value: Schema.Json,
      /** The layers whose value holds. A list is what all of its layers have in common. */
      set_by: Schema.Array(Schema.String),
      /** The layers that set the field, with what each says. */
      layers: Schema.Array(Schema.Struct({ layer: Schema.String, value: Schema.Json })),
      /** True if an exception raises the limit. */
      raised: Schema.Boolean
    })
  ),
  guardrail_policy: GuardrailPolicy,
  limit_raises: Schema.Array(AppliedRaise)
}).annotate({ identifier: "EffectivePolicy" })
export type ShownEffectivePolicy = typeof ShownEffectivePolicy.Type

/** How a form shows a field of a policy. Its value is `unrestricted` where it restricts nothing. */
export const PolicyField = Schema.Struct({
  field: Schema.String,
  help: Schema.String,
  kind: Schema.Literals(["boolean", "count", "dollars", "names", "numbers", "choice"]),
  choices: Schema.NullOr(Schema.Array(Schema.String)),
  minimum: Schema.NullOr(Schema.Finite),
  maximum: Schema.NullOr(Schema.Finite),
  unrestricted: Schema.Json
})
export type PolicyField = typeof PolicyField.Type

export const PolicyFields = Schema.Struct({
  fields: Schema.Array(PolicyField),
  /** The limits that the keys under a layer can share. */
  shared: Schema.Array(Schema.String),
  layer_kinds: Schema.Array(LayerKind),
  routes: Schema.Array(PolicyRoute)
})

/** A layer as `POST policy-layers` takes it, or fields of the policy of the key `key_id`. */
export const PolicyProposal = Schema.Struct({
  layer: Schema.optionalKey(PolicyLayerUpsert),
  key_id: Schema.optionalKey(Id),
  policy: Schema.optionalKey(Schema.NullOr(KeyPolicyInput)),
  guardrail_policy: Schema.optionalKey(Schema.NullOr(GuardrailPolicyPatch))
})
export type PolicyProposal = typeof PolicyProposal.Type

const FieldChange = Schema.Struct({ path: Schema.String, before: Schema.Json, after: Schema.Json })

export const PolicyImpact = Schema.Struct({
  /** The usable keys under the layer. */
  keys_covered: Schema.Int,
  /** The number of these that were looked at: those that were used last. */
  keys_looked_at: Schema.Int,
  /** The number of these whose policy would be another one. Others have stricter limits already. */
  keys_changed: Schema.Int,
  /** The first of the keys that would have another policy, the latest used first. */
  keys: Schema.Array(
    Schema.Struct({
      id: Id,
      name: Schema.NullOr(Schema.String),
      key_prefix: Schema.String,
      project_name: Schema.NullOr(Schema.String),
      last_used_at: Schema.NullOr(Timestamp),
      fields: Schema.Array(FieldChange),
      /** What the key gains and loses, in words. */
      effects: Schema.Array(Schema.String)
    })
  ),
  /** The changes of the limits that all keys under the layer share. */
  shared: Schema.Array(FieldChange)
}).annotate({ identifier: "PolicyImpact" })
export type PolicyImpact = typeof PolicyImpact.Type
