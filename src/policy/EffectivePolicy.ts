import * as GuardrailPolicy from "./GuardrailPolicy.ts"
import { intersection, type KeyPolicy, neutral } from "./KeyPolicy.ts"
import { type LimitRaise, raised } from "./LimitRaise.ts"
import type { PolicyLayer } from "./PolicyLayer.ts"

export interface EffectivePolicy {
  readonly policy: KeyPolicy
  readonly guardrails: GuardrailPolicy.GuardrailPolicy
  readonly version: number
  /** The policies that apply, from general to specific. The last one is the key's own policy. */
  readonly layers: ReadonlyArray<PolicyLayer>
  /** The exceptions for the key that `policy` includes. */
  readonly raises: ReadonlyArray<LimitRaise>
}

export const of = (layers: ReadonlyArray<PolicyLayer>, raises: ReadonlyArray<LimitRaise> = []): EffectivePolicy => ({
  policy: raised(layers.map(({ policy }) => policy).reduce(intersection, neutral), raises),
  // If all policies are neutral, the result must be the `neutral` object, because callers cache by identity.
  guardrails: layers
    .map(({ guardrails }) => guardrails)
    .filter((guardrails) => guardrails !== GuardrailPolicy.neutral)
    .reduce(GuardrailPolicy.merged, GuardrailPolicy.neutral),
  version: layers.reduce((version, layer) => Math.max(version, layer.version), 0),
  layers,
  raises
})
