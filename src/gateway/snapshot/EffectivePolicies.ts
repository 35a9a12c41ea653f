import * as EffectivePolicy from "../../policy/EffectivePolicy.ts"
import { applicableLayers, type PolicyLayers } from "../../policy/PolicyLayer.ts"
import type { PolicyRoute } from "../../policy/routes/CanonicalRoute.ts"
import { ownerOf } from "../../state/StoredKeys.ts"
import type { KeyRecord } from "./KeyRecord.ts"

/** How many effective policies are remembered for one key: batches may combine models in any number of ways. */
const maxPoliciesPerKey = 256

interface CachedPolicies {
  readonly layers: PolicyLayers
  readonly byScope: Map<string, EffectivePolicy.EffectivePolicy>
}

/**
 * The policy that a key's request is under, and the same object for as long as neither the key nor a layer changes:
 * what is derived from it can be remembered by it.
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

/** Names only what has a layer: all other routes and models share one policy. */
const scopeName = ({ of }: PolicyLayers, route: PolicyRoute, models: ReadonlyArray<string>): string => {
  const routeName = of.route.has(route) ? route : ""
  if (of.model.size === 0) return routeName
  const layered = models.filter((model) => of.model.has(model))
  return layered.length === 0 ? routeName : JSON.stringify([routeName, ...layered.toSorted()])
}
