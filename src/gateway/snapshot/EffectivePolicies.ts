import * as EffectivePolicy from "../../policy/EffectivePolicy.ts"
import * as LimitRaise from "../../policy/LimitRaise.ts"
import { applicableLayers, type PolicyLayers } from "../../policy/PolicyLayer.ts"
import type { PolicyRoute } from "../../policy/routes/CanonicalRoute.ts"
import { ownerOf } from "../../state/StoredKeys.ts"
import type { KeyRecord } from "./KeyRecord.ts"

/** A batch request may name any combination of models. This limit bounds the memory of the cache. */
const maxPoliciesPerKey = 256

interface CachedPolicies {
  readonly layers: PolicyLayers
  readonly raises: ReadonlyArray<LimitRaise.LimitRaise>
  /** When the first of `raises` ends. */
  readonly until: number
  readonly byScope: Map<string, EffectivePolicy.EffectivePolicy>
}

/**
 * The returned function returns the same object until the key or a policy layer changes, or an exception for the key
 * ends. Callers can then cache by object identity. Requests of keys without exceptions do not read the clock for this.
 */
export const makeCache = (
  now: () => number
): ((
  layers: PolicyLayers,
  key: KeyRecord,
  route: PolicyRoute,
  models: ReadonlyArray<string>
) => EffectivePolicy.EffectivePolicy) => {
  const policiesByKey = new WeakMap<KeyRecord, CachedPolicies>()
  return (layers, key, route, models) => {
    let remembered = policiesByKey.get(key)
    if (remembered?.layers !== layers || (key.raises.length > 0 && remembered.until <= now())) {
      const raises = LimitRaise.inForce(key.raises, now())
      remembered = { layers, raises, until: LimitRaise.nextEnd(raises), byScope: new Map() }
      policiesByKey.set(key, remembered)
    }
    const { byScope, raises } = remembered
    const scope = layers.empty ? "" : scopeName(layers, route, models)
    const known = byScope.get(scope)
    if (known !== undefined) return known
    const effective = EffectivePolicy.of(
      [...applicableLayers(layers, { ...ownerOf(key), route, models }), key.ownLayer],
      raises
    )
    if (byScope.size >= maxPoliciesPerKey) byScope.clear()
    byScope.set(scope, effective)
    return effective
  }
}

/** Returns the cache key. Routes and models without a policy layer of their own share one cached policy. */
const scopeName = ({ of }: PolicyLayers, route: PolicyRoute, models: ReadonlyArray<string>): string => {
  const routeName = of.route.has(route) ? route : ""
  if (of.model.size === 0) return routeName
  const layered = models.filter((model) => of.model.has(model))
  return layered.length === 0 ? routeName : JSON.stringify([routeName, ...layered.toSorted()])
}
