import { Schema, Struct } from "effect"

/** How a guardrail is called in policies and requests (reference §2.11). */
export const GuardrailName = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9._-]{1,128}$/))

const Names = Schema.Array(GuardrailName).check(Schema.isMaxLength(100))

/**
 * Which guardrails a key's requests go through (specification, "guardrail_policy"), under its wire names. Overrides lie
 * shallow over the catalogue's `runtime_config`, and wait where their guardrail is not selected.
 */
export const GuardrailPolicy = Schema.Struct({
  mandatory_guardrails: Names,
  optional_guardrails: Names,
  forbidden_guardrails: Names,
  guardrail_config_overrides: Schema.Record(GuardrailName, Schema.Record(Schema.String, Schema.Json))
})
export type GuardrailPolicy = typeof GuardrailPolicy.Type

export const GuardrailPolicyPatch = GuardrailPolicy.mapFields(Struct.map(Schema.optionalKey))
export type GuardrailPolicyPatch = typeof GuardrailPolicyPatch.Type

export const neutral: GuardrailPolicy = {
  mandatory_guardrails: [],
  optional_guardrails: [],
  forbidden_guardrails: [],
  guardrail_config_overrides: {}
}

/** A policy that says nothing is the neutral one itself, so that what it selects is remembered for all such keys. */
export const of = (patch: GuardrailPolicyPatch): GuardrailPolicy =>
  Object.keys(patch).length === 0 ? neutral : { ...neutral, ...patch }
