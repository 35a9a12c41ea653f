import * as GuardrailPolicy from "./GuardrailPolicy.ts"
import { intersection, type KeyPolicy, neutral } from "./KeyPolicy.ts"
import type { PolicyLayer } from "./PolicyLayer.ts"

export interface EffectivePolicy {
  readonly policy: KeyPolicy
  readonly guardrails: GuardrailPolicy.GuardrailPolicy
  readonly version: number
  /** Ordered from general to specific; the key's own policy is the last. */
  readonly layers: ReadonlyArray<PolicyLayer>
}

export const of = (layers: ReadonlyArray<PolicyLayer>): EffectivePolicy => ({
  policy: layers.map(({ policy }) => policy).reduce(intersection, neutral),
  // keep the identity of the neutral policy: callers cache by it
  guardrails: layers
    .map(({ guardrails }) => guardrails)
    .filter((guardrails) => guardrails !== GuardrailPolicy.neutral)
    .reduce(GuardrailPolicy.merged, GuardrailPolicy.neutral),
  version: layers.reduce((version, layer) => Math.max(version, layer.version), 0),
  layers
})
