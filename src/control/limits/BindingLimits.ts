import type { DateTime } from "effect"
import * as EffectivePolicy from "../../policy/EffectivePolicy.ts"
import type { Limit } from "../../policy/Limit.ts"
import { layerName, ownerLayers, type PolicyLayer, type PolicyLayers } from "../../policy/PolicyLayer.ts"
import { type LimitField, limitFields, none, type SharedLimits } from "../../policy/SharedLimits.ts"
import * as LimitScopes from "../../state/limits/LimitScopes.ts"
import * as Meters from "../../state/limits/Meters.ts"
import { ownerOf, type StoredKey } from "../../state/StoredKeys.ts"

/** Counters with their limits, and the name of the layer to whose requests alone the limits apply. */
export interface BindingLimits {
  readonly within: string | null
  readonly scope: Meters.ScopeMeters
}

/** A key under more layers of routes and models than this shows the limits of these only. */
const maxNarrowingLayers = 20

const policyOf = (layers: PolicyLayers, key: StoredKey, narrowing: ReadonlyArray<PolicyLayer> = []) =>
  EffectivePolicy.of([
    ...ownerLayers(layers, ownerOf(key)).filter((layer) => layer !== undefined),
    ...narrowing,
    key.ownLayer
  ])

/** The limits of the key alone that apply to all its requests. */
export const ofKey = (layers: PolicyLayers, key: StoredKey, now: DateTime.Utc): BindingLimits => ({
  within: null,
  scope: Meters.ofScope(LimitScopes.ofStoredKey(layers, key, policyOf(layers, key).policy), now)
})

/** All limits that a request of the key may meet: its own, those of routes and models, and those that layers share. */
export const ofKeyAndLayers = (
  layers: PolicyLayers,
  key: StoredKey,
  now: DateTime.Utc
): ReadonlyArray<BindingLimits> => {
  const usual = policyOf(layers, key)
  const narrowing = [...layers.of.route.values(), ...layers.of.model.values()].slice(0, maxNarrowingLayers)
  return [
    ...LimitScopes.of(layers, key, usual).map((scope) => ({ within: null, scope: Meters.ofScope(scope, now) })),
    ...narrowing.flatMap((layer) => {
      const limits = narrowed(usual.policy, policyOf(layers, key, [layer]).policy)
      const own = LimitScopes.ofStoredKey(layers, key, limits)
      return [
        { within: layerName(layer), scope: Meters.ofScope(own, now) },
        ...ofLayer(layer, now).map(({ scope }) => ({ within: layerName(layer), scope }))
      ]
    })
  ]
}

/** The limits that all keys under the layer share. */
export const ofLayer = (layer: PolicyLayer, now: DateTime.Utc): ReadonlyArray<BindingLimits> => {
  const scope = LimitScopes.ofLayer(layer)
  return scope === undefined ? [] : [{ within: null, scope: Meters.ofScope(scope, now) }]
}

/** Returns the limits of `special` that are lower than those of `usual`. */
const narrowed = (usual: SharedLimits, special: SharedLimits): SharedLimits => {
  const lower: { [Field in LimitField]?: Limit } = {}
  for (const field of limitFields) {
    if (maximumOf(special, field) < maximumOf(usual, field)) lower[field] = special[field]
  }
  return { ...none, ...lower }
}

const maximumOf = (limits: SharedLimits, field: LimitField): number => {
  const limit = limits[field]
  return limit._tag === "Limited" ? limit.max : Number.POSITIVE_INFINITY
}
