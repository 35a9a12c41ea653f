import { Clock, Deferred, Effect, Exit, Metric, Result, type Scope } from "effect"
import type { Egress } from "../services/Egress.ts"
import * as Discovery from "./Discovery.ts"
import type { IdentityProvider } from "./IdentityProvider.ts"
import * as KeySet from "./KeySet.ts"
import { TokenRefused } from "./TokenRefused.ts"

/** Clients can send unknown key ids. This interval limits how often they cause requests to the identity provider. */
const minRefreshIntervalMs = 5000

/** The cached signing keys of one identity provider. */
export interface IssuerKeys {
  /** Returns the key set unless a new fetch is due. Verified tokens stay accepted while this is the same object. */
  readonly currentSet: (now: number) => KeySet.KeySet | undefined
  /** Returns the key set. Fetches it again first if it is too old or lacks the key `kid`. */
  readonly setFor: (kid: string) => Effect.Effect<KeySet.KeySet, TokenRefused>
}

const attempts = Metric.counter("gateway_identity_key_refreshes_total", {
  description: "Attempts to load the signing keys of the identity provider",
  incremental: true
})

/** Fetches run in `scope`, because other requests may still need the keys when the first client disconnects. */
export const make = (provider: IdentityProvider, egress: Egress["Service"], scope: Scope.Scope): IssuerKeys => {
  let loaded: LoadedKeys | undefined
  let staleAt = 0
  let nextRefreshAt = 0
  let failure: TokenRefused | undefined
  let loading: Deferred.Deferred<void> | undefined

  const refresh = Effect.gen(function* () {
    const result = yield* Effect.result(load(provider, egress, loaded))
    if (Result.isSuccess(result)) {
      loaded = result.success
      staleAt = (yield* Clock.currentTimeMillis) + provider.keysTtlMs
      failure = undefined
    } else {
      // Loaded keys stay valid. An outage of the identity provider then affects only tokens with unknown keys.
      failure = result.failure.refusal
      yield* Effect.logWarning(
        "cannot load the signing keys of the identity provider; only keys already loaded stay valid",
        { why: result.failure.why }
      )
    }
    const outcome = Result.isSuccess(result) ? "loaded" : "failed"
    yield* Metric.update(Metric.withAttributes(attempts, { outcome }), 1)
  })

  const startRefresh = Effect.suspend(() => {
    if (loading !== undefined) return Effect.succeed(loading)
    const done = Deferred.makeUnsafe<void>()
    loading = done
    const ended = Effect.map(Clock.currentTimeMillis, (now) => {
      nextRefreshAt = now + minRefreshIntervalMs
      loading = undefined
      Deferred.doneUnsafe(done, Exit.void)
    })
    return Effect.as(Effect.forkIn(Effect.ensuring(refresh, ended), scope), done)
  })

  return {
    currentSet: (now) => {
      const isIssuerDown = failure !== undefined && (loading !== undefined || now < nextRefreshAt)
      return now < staleAt || isIssuerDown ? loaded?.set : undefined
    },
    setFor: Effect.fnUntraced(function* (kid) {
      const now = yield* Clock.currentTimeMillis
      const known = loaded?.set.kids.has(kid) === true
      if ((!known || now >= staleAt) && (loading !== undefined || now >= nextRefreshAt)) {
        const refreshing = yield* startRefresh
        // While fetches fail, requests with a known key do not wait for the next fetch. They use the old key set.
        if (!known || failure === undefined) yield* Deferred.await(refreshing)
      }
      return loaded?.set ?? (yield* Effect.fail(failure ?? unverifiable))
    })
  }
}

const unverifiable = new TokenRefused({ fault: "unverifiable" })

/** Keeps the keys of the provider that is configured now. */
export const makeCurrent = (egress: Egress["Service"], scope: Scope.Scope): ((of: IdentityProvider) => IssuerKeys) => {
  let current: { readonly provider: string; readonly keys: IssuerKeys } | undefined
  return (provider) => {
    const cacheKey = `${provider.discoveryUrl} ${provider.issuer} ${provider.keysTtlMs}`
    if (current?.provider !== cacheKey) current = { provider: cacheKey, keys: make(provider, egress, scope) }
    return current.keys
  }
}

interface LoadedKeys {
  /** The document at `jwks_uri`. */
  readonly text: string
  readonly set: KeySet.KeySet
}

/** Returns `before` if the document has not changed. Otherwise each unknown key id would discard all verified tokens. */
const load = Effect.fn("IssuerKeys.load")(function* (
  provider: IdentityProvider,
  egress: Egress["Service"],
  before: LoadedKeys | undefined
) {
  const { jwks_uri } = yield* Discovery.load(provider, egress)
  const text = yield* Discovery.fetchDocument(egress, "key set", jwks_uri)
  if (text === before?.text) return before
  const set = yield* Effect.mapError(Effect.fromOption(KeySet.parse(text)), () =>
    Discovery.unavailable("the document at jwks_uri is not a key set")
  )
  return { text, set }
})
