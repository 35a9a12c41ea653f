import { Clock, Deferred, Effect, Exit, Metric, Schema, type Scope } from "effect"
import type { CryptoKey } from "jose"
import type { Algorithm } from "../../policy/AuthSettings.ts"
import type { Egress } from "../../services/Egress.ts"
import { GatewayError } from "../GatewayError.ts"
import type { IdentityProvider } from "./CallerAuth.ts"
import * as Claims from "./Claims.ts"
import * as KeySet from "./KeySet.ts"

const fetchTimeoutMs = 3000
const maxDocumentBytes = 262_144
/** Limits the load on the provider when clients present forged key ids. */
const minRefreshIntervalMs = 5000

/** The cached signing keys of one issuer, located by its discovery document. */
export interface IssuerKeys {
  /** The key set that is valid now, without a refresh. A token verified with this very set stays verified. */
  readonly currentSet: (now: number) => KeySet.KeySet | undefined
  /** Refreshes the keys when they are stale or the id is unknown. */
  readonly findKey: (kid: string, alg: Algorithm) => Effect.Effect<ResolvedKey, GatewayError>
}

export interface ResolvedKey {
  readonly key: CryptoKey
  readonly set: KeySet.KeySet
}

const Discovery = Schema.fromJsonString(Schema.Struct({ issuer: Schema.String, jwks_uri: Schema.String }))
const decodeDiscovery = Schema.decodeUnknownEffect(Discovery)

const attempts = Metric.counter("gateway_identity_key_refreshes_total", {
  description: "Attempts to load the signing keys of the identity provider",
  incremental: true
})
const refreshCounter = (outcome: "loaded" | "failed") => Metric.withAttributes(attempts, { outcome })

/** Refreshes run in `scope`, so that they survive the disconnect of the client that caused them. */
export const make = (provider: IdentityProvider, egress: Egress["Service"], scope: Scope.Scope): IssuerKeys => {
  let keys: KeySet.KeySet | undefined
  let staleAt = 0
  let nextRefreshAt = 0
  let failure: GatewayError | undefined
  let loading: Deferred.Deferred<void> | undefined

  const fetchDocument = Effect.fnUntraced(function* (what: string, url: string) {
    const { body, status } = yield* Effect.mapError(
      egress.fetch({
        method: "GET",
        url,
        headers: { accept: "application/json" },
        withinMs: fetchTimeoutMs,
        maxBytes: maxDocumentBytes
      }),
      ({ message, reason }) => unavailable(`the ${what} cannot be fetched (${reason}): ${message}`)
    )
    if (status !== 200) return yield* Effect.fail(unavailable(`fetching the ${what} returned status ${status}`))
    return Buffer.from(body).toString("utf8")
  })

  const load = Effect.gen(function* () {
    const text = yield* fetchDocument("discovery document", provider.discoveryUrl)
    const { issuer, jwks_uri } = yield* Effect.mapError(decodeDiscovery(text), () =>
      unavailable("the discovery document lacks issuer or jwks_uri")
    )
    if (issuer !== provider.issuer) return yield* Effect.fail(wrongDiscoveryIssuer)
    const set = KeySet.parse(yield* fetchDocument("key set", jwks_uri))
    return set ?? (yield* Effect.fail(unavailable("the document at jwks_uri is not a key set")))
  })

  const refresh = (done: Deferred.Deferred<void>) =>
    load.pipe(
      Effect.matchEffect({
        onSuccess: (set) =>
          Effect.gen(function* () {
            keys = set
            staleAt = (yield* Clock.currentTimeMillis) + provider.keysTtlMs
            failure = undefined
            yield* Metric.update(refreshCounter("loaded"), 1)
          }),
        // The known keys stay valid: an issuer outage locks out nobody whose key is known.
        onFailure: ({ refusal, why }) =>
          Effect.gen(function* () {
            failure = refusal
            yield* Metric.update(refreshCounter("failed"), 1)
            yield* Effect.logWarning("cannot load the signing keys of the identity provider", { why })
          })
      }),
      Effect.onExit(() =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          nextRefreshAt = now + minRefreshIntervalMs
          loading = undefined
          Deferred.doneUnsafe(done, Exit.void)
        })
      )
    )

  const startRefresh = Effect.suspend(() => {
    if (loading !== undefined) return Effect.succeed(loading)
    const done = Deferred.makeUnsafe<void>()
    loading = done
    return Effect.as(Effect.forkIn(refresh(done), scope), done)
  })

  const find: IssuerKeys["findKey"] = Effect.fnUntraced(function* (kid, alg) {
    const now = yield* Clock.currentTimeMillis
    const known = keys?.has(kid) === true
    if ((!known || now >= staleAt) && (loading !== undefined || now >= nextRefreshAt)) {
      const refreshing = yield* startRefresh
      // A stale key waits for one refresh. While the issuer is down, the stale key remains usable.
      if (!known || failure === undefined) yield* Deferred.await(refreshing)
    }
    const set = keys
    if (set === undefined) return yield* Effect.fail(failure ?? Claims.invalid)
    const found = set.find(kid, alg)
    if (found === undefined) return yield* Effect.fail(Claims.invalid)
    const key = yield* Effect.tryPromise({ try: () => found, catch: () => Claims.invalid })
    return { key, set }
  })

  return {
    findKey: find,
    currentSet: (now) => {
      const isIssuerDown = failure !== undefined && (loading !== undefined || now < nextRefreshAt)
      return now < staleAt || isIssuerDown ? keys : undefined
    }
  }
}

const keysUnavailable = new GatewayError({
  code: "invalid_identity_token",
  message:
    "The gateway cannot verify the identity token now because it could not load the keys of the identity provider. Try again shortly."
})

const unavailable = (why: string) => ({ why, refusal: keysUnavailable })

const wrongDiscoveryIssuer = {
  why: "the discovery document names another issuer than the configured one",
  refusal: Claims.wrongIssuer
}
