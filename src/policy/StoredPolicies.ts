import { Predicate, Schema } from "effect"
import * as GuardrailPolicy from "./GuardrailPolicy.ts"
import { KeyPolicy, KeyPolicyPatch, neutral, patched } from "./KeyPolicy.ts"

/** The two policies of a key or a layer. */
export interface Policies {
  readonly policy: KeyPolicy
  readonly guardrails: GuardrailPolicy.GuardrailPolicy
}

/**
 * The policies that a row holds; what they leave out is neutral. Throws where this version cannot decode them, and where
 * they have a field that it does not know: a newer version may restrict something by it, which must not be dropped
 * silently. A field of a newer version that restricts nothing (`null`) is no obstacle.
 */
export const decode = (row: { readonly policy: unknown; readonly guardrail_policy: unknown }): Policies => ({
  policy: patched(neutral, decodePolicy(withoutNeutral(KeyPolicy.fields, row.policy))),
  guardrails: GuardrailPolicy.of(
    decodeGuardrails(withoutNeutral(GuardrailPolicy.GuardrailPolicy.fields, row.guardrail_policy))
  )
})

/**
 * A policy as its row holds it: without the fields that are neutral. An older version does not know every field, and
 * takes an unknown one for a restriction that it cannot enforce.
 */
export const encode = (policy: KeyPolicy): string =>
  JSON.stringify(
    Object.fromEntries(
      Object.entries(encodePolicy(policy)).filter(([field, value]) => value !== neutralFields.get(field))
    )
  )

/** The closed reading of policies that cannot be decoded. */
export const denyingPolicies: Policies = { policy: { ...neutral, deny: true }, guardrails: GuardrailPolicy.neutral }

const encodePolicy = Schema.encodeSync(KeyPolicy)
/** Every neutral value is a primitive on the wire. */
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

/** `null`, or an object of nothing else: a group of limits of which none is set. */
const restrictsNothing = (value: unknown): boolean =>
  value === null || (Predicate.isObject(value) && !Array.isArray(value) && Object.values(value).every(restrictsNothing))
