import * as EffectivePolicy from "../../policy/EffectivePolicy.ts"
import { applicableLayers, type PolicyLayers } from "../../policy/PolicyLayer.ts"
import type { PolicyRoute } from "../../policy/routes/CanonicalRoute.ts"
import { ownerOf } from "../../state/StoredKeys.ts"
import type { KeyRecord } from "./KeyRecord.ts"

/** A batch request may name any combination of models. This limit bounds the memory of the cache. */
const maxPoliciesPerKey = 256

interface CachedPolicies {
  readonly layers: PolicyLayers
  readonly byScope: Map<string, EffectivePolicy.EffectivePolicy>
}

/**
 * The returned function returns the same object until the key or a policy layer changes. Callers can then cache by
 * object identity.
 */
export const makeCache = (): ((
  layers: PolicyLayers,
  key: KeyRecord,
  route: PolicyRoute,
  models: ReadonlyArray<string>
) => EffectivePolicy.EffectivePolicy) => {
  const policiesByKey = new WeakMap<KeyRecord, CachedPolicies>()
  return (layers, key, route, models) => {
    let remembered = policiesByKey.get(key)
    if (remembered?.layers !== layers) {
      remembered = { layers, byScope: new Map() }
      policiesByKey.set(key, remembered)
    }
    const { byScope } = remembered
    const scope = layers.empty ? "" : scopeName(layers, route, models)
    const known = byScope.get(scope)
    if (known !== undefined) return known
    const effective = EffectivePolicy.of([
      ...applicableLayers(layers, {
        ...ownerOf(key),
        route,
        models
      }),
      key.ownLayer
    ])
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
