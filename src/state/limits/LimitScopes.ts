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
import { ownerOf, type StoredKey } from "../StoredKeys.ts"

/** The owner of a usage counter: one key, or a policy layer whose keys share the counter. */
export type CountedOwner =
  | { readonly _tag: "Key"; readonly keyId: string }
  | { readonly _tag: "Layer"; readonly kind: LayerKind; readonly scopeId: string }

export interface LimitScope {
  /** Part of Redis key names. It is unique and contains no blanks. */
  readonly id: string
  /** The name of the policy layer in records and explanations. Absent if the limit belongs to one key. */
  readonly layer?: string
  readonly nameOf: (field: LimitField) => string
  readonly owner: CountedOwner
  readonly limits: SharedLimits
  /** Returns the requests that count towards the limit `field`, and the configuration epoch since which they count. */
  readonly counted: (field: LimitField) => CountedSince
}

/** Returns the limit scopes that count a request of `key`. The first one is the scope of the key itself. */
export const of = (layers: PolicyLayers, key: StoredKey, effective: EffectivePolicy): ReadonlyArray<LimitScope> => [
  ofStoredKey(layers, key, effective.policy),
  ...effective.layers.map(ofLayer).filter((scope) => scope !== undefined)
]

/** The scope of `key` alone, with those of its limits that are in `limits`. */
export const ofStoredKey = (layers: PolicyLayers, key: StoredKey, limits: SharedLimits): LimitScope =>
  ofKey(key.id, limits, (field) =>
    countedRequests(layers, { ...ownerOf(key), since: key.ownerSince }, key.ownLayer, field)
  )

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

/** Returns the same object until the layer changes. Settlements of different keys can then share one batch. */
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
