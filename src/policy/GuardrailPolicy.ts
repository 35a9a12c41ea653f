import { Schema, Struct } from "effect"

export const GuardrailName = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9._-]{1,128}$/))

const Names = Schema.Array(GuardrailName).check(Schema.isMaxLength(100))

/** A configuration override replaces top-level members of the guardrail's `runtime_config`. */
export const GuardrailPolicy = Schema.Struct({
  mandatory_guardrails: Names,
  optional_guardrails: Names,
  forbidden_guardrails: Names,
  guardrail_config_overrides: Schema.Record(GuardrailName, Schema.Record(Schema.String, Schema.Json))
}).annotate({ identifier: "GuardrailPolicy" })
export type GuardrailPolicy = typeof GuardrailPolicy.Type

export const GuardrailPolicyPatch = GuardrailPolicy.mapFields(Struct.map(Schema.optionalKey))
export type GuardrailPolicyPatch = typeof GuardrailPolicyPatch.Type

export const neutral: GuardrailPolicy = {
  mandatory_guardrails: [],
  optional_guardrails: [],
  forbidden_guardrails: [],
  guardrail_config_overrides: {}
}

/** Returns the same `neutral` object for every empty patch, because callers cache by object identity. */
export const of = (patch: GuardrailPolicyPatch): GuardrailPolicy =>
  Object.keys(patch).length === 0 ? neutral : { ...neutral, ...patch }

export const patched = (base: GuardrailPolicy, patch: GuardrailPolicyPatch): GuardrailPolicy => ({ ...base, ...patch })

/** If one policy forbids a guardrail, the other policy cannot offer or configure it. If both configure it, `b` wins. */
export const merged = (a: GuardrailPolicy, b: GuardrailPolicy): GuardrailPolicy => {
  const forbidden = union(a.forbidden_guardrails, b.forbidden_guardrails)
  return {
    mandatory_guardrails: union(a.mandatory_guardrails, b.mandatory_guardrails),
    optional_guardrails: union(a.optional_guardrails, b.optional_guardrails).filter(
      (name) => !forbidden.includes(name)
    ),
    forbidden_guardrails: forbidden,
    guardrail_config_overrides: { ...permittedOverrides(a, b), ...permittedOverrides(b, a) }
  }
}

/** A policy that both forbids and configures a guardrail keeps both. Its requests are then refused. */
const permittedOverrides = (
  own: GuardrailPolicy,
  other: GuardrailPolicy
): GuardrailPolicy["guardrail_config_overrides"] => {
  const overrides = Object.entries(own.guardrail_config_overrides)
  if (overrides.length === 0 || other.forbidden_guardrails.length === 0) return own.guardrail_config_overrides
  const isForbiddenByOther = (name: string) =>
    other.forbidden_guardrails.includes(name) && !own.forbidden_guardrails.includes(name)
  return Object.fromEntries(overrides.filter(([name]) => !isForbiddenByOther(name)))
}

const union = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): ReadonlyArray<string> => [...new Set([...a, ...b])]

export const names = (policy: GuardrailPolicyPatch): ReadonlyArray<string> =>
  [
    policy.mandatory_guardrails ?? [],
    policy.optional_guardrails ?? [],
    policy.forbidden_guardrails ?? [],
    Object.keys(policy.guardrail_config_overrides ?? {})
  ].reduce(union)
