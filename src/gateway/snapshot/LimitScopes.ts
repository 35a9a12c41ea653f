import type { EffectivePolicy } from "../../policy/EffectivePolicy.ts"
import {
  type CountedSince,
  countedRequests,
  type LayerKind,
  layerName,
  type PolicyLayer,
  type PolicyLayers,
  sharedLimitName
} from "../../policy/PolicyLayer.ts"
import { hasLimit, type LimitField, type SharedLimits } from "../../policy/SharedLimits.ts"
import { ownerOf } from "../../state/StoredKeys.ts"
import type { KeyRecord } from "./KeyRecord.ts"

/** Whose requests are counted together: those of a key, or those under a policy layer. */
export type CountedOwner =
  | { readonly _tag: "Key"; readonly keyId: string }
  | { readonly _tag: "Layer"; readonly kind: LayerKind; readonly scopeId: string }

/** What has counters of its own in Redis: a key, or a policy layer whose keys share limits. */
export interface LimitScope {
  /** Its part of the names of its keys in Redis: without blanks, and never that of another scope. */
  readonly id: string
  /** Of the layer, as records and explanations call it. */
  readonly layer?: string
  /** How a refusal calls a limit of the scope. */
  readonly nameOf: (field: LimitField) => string
  readonly owner: CountedOwner
  readonly limits: SharedLimits
  /** Which of the owner's requests the counter of a limit counts, and since which change. */
  readonly counted: (field: LimitField) => CountedSince
}

/** The scopes that a request of `key` under `effective` is counted in: the key's own first. */
export const of = (layers: PolicyLayers, key: KeyRecord, effective: EffectivePolicy): ReadonlyArray<LimitScope> => [
  ofKey(key.id, effective.policy, (field) =>
    countedRequests(
      layers,
      {
        ...ownerOf(key),
        since: key.ownerSince
      },
      key.ownLayer,
      field
    )
  ),
  ...effective.layers.map(ofLayer).filter((scope) => scope !== undefined)
]

export const ofKey = (
  keyId: string,
  limits: SharedLimits,
  counted: LimitScope["counted"] = () => ({ counted: "all", since: 0 })
): LimitScope => ({
  id: keyId,
  nameOf: (field) => `${field} of this key`,
  owner: { _tag: "Key", keyId },
  limits,
  counted
})

const scopeByLayer = new WeakMap<PolicyLayer, LimitScope>()

/** The same scope for as long as the layer does not change: requests of all its keys are settled together. */
export const ofLayer = (layer: PolicyLayer): LimitScope | undefined => {
  if (layer.kind === "key" || layer.kind === "unknown" || layer.shared === undefined || !hasLimit(layer.shared.limits))
    return undefined
  const known = scopeByLayer.get(layer)
  if (known !== undefined) return known
  const { kind } = layer
  const { limits, since } = layer.shared
  const scopeId = layer.scopeId ?? ""
  const scope: LimitScope = {
    id: kind === "global" ? "global" : `${kind}:${encodeURIComponent(scopeId.toWellFormed())}`,
    layer: layerName(layer),
    nameOf: (field) => sharedLimitName(layer, field),
    owner: { _tag: "Layer", kind, scopeId },
    limits,
    counted: (field) => ({ counted: "all", since: since[field] ?? 0 })
  }
  scopeByLayer.set(layer, scope)
  return scope
}
