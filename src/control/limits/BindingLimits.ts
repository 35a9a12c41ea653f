import { DateTime } from "effect"
import * as EffectivePolicy from "../../policy/EffectivePolicy.ts"
import type { Limit } from "../../policy/Limit.ts"
import * as LimitRaise from "../../policy/LimitRaise.ts"
import { layerName, ownerLayers, type PolicyLayer, type PolicyLayers } from "../../policy/PolicyLayer.ts"
import { type LimitField, limitFields, none, type SharedLimits } from "../../policy/SharedLimits.ts"
import * as LimitScopes from "../../state/limits/LimitScopes.ts"
import * as Meters from "../../state/limits/Meters.ts"
import { ownerOf, type StoredKey } from "../../state/StoredKeys.ts"

/** Counters with their limits. */
export interface BindingLimits {
  /** The name of the layer to whose requests alone the limits apply. */
  readonly within: string | null
  readonly scope: Meters.ScopeMeters
  /** The exceptions that raise limits of the scope. */
  readonly raises: ReadonlyArray<LimitRaise.LimitRaise>
}

/** A key under more layers of routes and models than this shows the limits of these only. */
const maxNarrowingLayers = 20

const policyOf = (layers: PolicyLayers, key: StoredKey, now: number, narrowing: ReadonlyArray<PolicyLayer> = []) =>
  EffectivePolicy.of(
    [...ownerLayers(layers, ownerOf(key)).filter((layer) => layer !== undefined), ...narrowing, key.ownLayer],
    LimitRaise.inForce(key.raises, now)
  )

const narrowingOf = ({ of }: PolicyLayers): ReadonlyArray<PolicyLayer> => [...of.route.values(), ...of.model.values()]

const ownLimits = (
  layers: PolicyLayers,
  key: StoredKey,
  now: DateTime.Utc,
  { policy, raises }: EffectivePolicy.EffectivePolicy
): BindingLimits => ({
  within: null,
  scope: Meters.ofScope(LimitScopes.ofStoredKey(layers, key, policy), now),
  raises
})

/** The limits of the key alone that apply to all its requests. */
export const ofKey = (layers: PolicyLayers, key: StoredKey, now: DateTime.Utc): BindingLimits =>
  ownLimits(layers, key, now, policyOf(layers, key, DateTime.toEpochMillis(now)))

/** All limits that a request of the key may meet: its own, those of routes and models, and those that layers share. */
export const ofKeyAndLayers = (
  layers: PolicyLayers,
  key: StoredKey,
  now: DateTime.Utc
): ReadonlyArray<BindingLimits> => {
  const millis = DateTime.toEpochMillis(now)
  const usual = policyOf(layers, key, millis)
  return [
    ownLimits(layers, key, now, usual),
    ...usual.layers.flatMap((layer) => ofLayer(layer, now)),
    ...narrowingOf(layers)
      .slice(0, maxNarrowingLayers)
      .flatMap((layer) => {
        const special = policyOf(layers, key, millis, [layer])
        const own = { ...special, policy: { ...special.policy, ...narrowed(usual.policy, special.policy) } }
        return [ownLimits(layers, key, now, own), ...ofLayer(layer, now)].map((limits) => ({
          ...limits,
          within: layerName(layer)
        }))
      })
  ]
}

export type LowestLimits = { readonly [Field in LimitField]?: number }

/** The limits in force for a key. Where only routes or models are limited, the lowest of their limits. */
export const lowest = (layers: PolicyLayers, key: StoredKey, now: number): LowestLimits => {
  const usual = policyOf(layers, key, now).policy
  const special = narrowingOf(layers).map((layer) => policyOf(layers, key, now, [layer]).policy)
  const limits: { [Field in LimitField]?: number } = {}
  for (const field of limitFields) {
    const limit =
      usual[field]._tag === "Limited"
        ? maximumOf(usual, field)
        : Math.min(...special.map((one) => maximumOf(one, field)))
    if (Number.isFinite(limit)) limits[field] = limit
  }
  return limits
}

/** The limits that all keys under the layer share. */
export const ofLayer = (layer: PolicyLayer, now: DateTime.Utc): ReadonlyArray<BindingLimits> => {
  const scope = LimitScopes.ofLayer(layer)
  return scope === undefined ? [] : [{ within: null, scope: Meters.ofScope(scope, now), raises: [] }]
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
