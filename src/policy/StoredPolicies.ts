import { Predicate, Schema } from "effect"
import * as GuardrailPolicy from "./GuardrailPolicy.ts"
import { KeyPolicy, KeyPolicyPatch, neutral, patched } from "./KeyPolicy.ts"

export interface Policies {
  readonly policy: KeyPolicy
  readonly guardrails: GuardrailPolicy.GuardrailPolicy
}

/** Throws on an unknown field that restricts something, because a newer version may have stored the restriction. */
export const decode = (row: { readonly policy: unknown; readonly guardrail_policy: unknown }): Policies => ({
  policy: patched(neutral, decodePolicy(withoutNeutral(KeyPolicy.fields, row.policy))),
  guardrails: GuardrailPolicy.of(
    decodeGuardrails(withoutNeutral(GuardrailPolicy.GuardrailPolicy.fields, row.guardrail_policy))
  )
})

/** Leaves out fields that restrict nothing, because an older version refuses fields that it does not know. */
export const encode = (policy: KeyPolicy): string =>
  JSON.stringify(
    Object.fromEntries(
      Object.entries(encodePolicy(policy)).filter(([field, value]) => value !== neutralFields.get(field))
    )
  )

export const denyingPolicies: Policies = { policy: { ...neutral, deny: true }, guardrails: GuardrailPolicy.neutral }

const encodePolicy = Schema.encodeSync(KeyPolicy)
/** The JSON fields of a policy that restricts nothing. All values are primitive. */
const neutralFields: ReadonlyMap<string, unknown> = new Map(Object.entries(encodePolicy(neutral)))

const strict = { onExcessProperty: "error" } as const
const decodePolicy = Schema.decodeUnknownSync(KeyPolicyPatch, strict)
const decodeGuardrails = Schema.decodeUnknownSync(GuardrailPolicy.GuardrailPolicyPatch, strict)

const withoutNeutral = (known: object, policy: unknown): unknown =>
  Predicate.isObject(policy)
    ? Object.fromEntries(
        Object.entries(policy).filter(([field, value]) => Object.hasOwn(known, field) || !restrictsNothing(value))
      )
    : policy

/** Returns true if a value restricts nothing. Such a value is `null`, or an object with only such values. */
const restrictsNothing = (value: unknown): boolean =>
  value === null || (Predicate.isObject(value) && !Array.isArray(value) && Object.values(value).every(restrictsNothing))
