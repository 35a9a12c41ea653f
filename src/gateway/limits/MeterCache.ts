import { DateTime } from "effect"
import type { EffectivePolicy } from "../../policy/EffectivePolicy.ts"
import type { LimitScope } from "../../state/limits/LimitScopes.ts"
import { ofScope, type RequestMeters, requestMeters, type ScopeMeters } from "../../state/limits/Meters.ts"

interface CachedForMinute<A> {
  readonly minute: number
  readonly value: A
}

/** Returns the same object within a minute (the shortest window). Callers can then cache by object identity. */
export const memoizedMeters = (): ((
  effective: EffectivePolicy,
  scopes: (effective: EffectivePolicy) => ReadonlyArray<LimitScope>,
  now: number
) => RequestMeters) => {
  const scopesOf = new WeakMap<EffectivePolicy, ReadonlyArray<LimitScope>>()
  const ofRequests = new WeakMap<EffectivePolicy, CachedForMinute<RequestMeters>>()
  const ofScopes = new WeakMap<LimitScope, CachedForMinute<ScopeMeters>>()
  const cachedForMinute = <K extends object, A>(
    cache: WeakMap<K, CachedForMinute<A>>,
    key: K,
    minute: number,
    make: () => A
  ): A => {
    const cached = cache.get(key)
    if (cached?.minute === minute) return cached.value
    const value = make()
    cache.set(key, { minute, value })
    return value
  }
  return (effective, scopes, now) => {
    const minute = Math.floor(now / 60_000)
    return cachedForMinute(ofRequests, effective, minute, () => {
      let cached = scopesOf.get(effective)
      if (cached === undefined) {
        cached = scopes(effective)
        scopesOf.set(effective, cached)
      }
      const at = DateTime.makeUnsafe(now)
      return requestMeters(cached.map((scope) => cachedForMinute(ofScopes, scope, minute, () => ofScope(scope, at))))
    })
  }
}

/** Keeps only the meters that count requests. Returns the same object for the same `meters`. */
export const requestCountersOnly = (): ((meters: RequestMeters) => RequestMeters) => {
  const cache = new WeakMap<RequestMeters, RequestMeters>()
  return (meters) => {
    const cached = cache.get(meters)
    if (cached !== undefined) return cached
    const counting = requestMeters(
      meters.scopes.map(({ meters, scope }) => ({ scope, meters: meters.filter(({ unit }) => unit === "requests") }))
    )
    cache.set(meters, counting)
    return counting
  }
}
