import * as GuardrailPolicy from "./GuardrailPolicy.ts"
import { intersection, type KeyPolicy, neutral } from "./KeyPolicy.ts"
import type { PolicyLayer } from "./PolicyLayer.ts"

/** What a request is decided by: the layers that it is under and its key's own policy, merged. */
export interface EffectivePolicy {
  readonly policy: KeyPolicy
  readonly guardrails: GuardrailPolicy.GuardrailPolicy
  /** The highest of the layers' versions. */
  readonly version: number
  /** From the general to the particular; the key's own is the last. */
  readonly layers: ReadonlyArray<PolicyLayer>
}

/** `layers` in their order, the key's own at the end. */
export const of = (layers: ReadonlyArray<PolicyLayer>): EffectivePolicy => ({
  policy: layers.map(({ policy }) => policy).reduce(intersection, neutral),
  // where nobody says anything it is the neutral policy itself
  guardrails: layers
    .map(({ guardrails }) => guardrails)
    .filter((guardrails) => guardrails !== GuardrailPolicy.neutral)
    .reduce(GuardrailPolicy.merged, GuardrailPolicy.neutral),
  version: layers.reduce((version, layer) => Math.max(version, layer.version), 0),
  layers
})
