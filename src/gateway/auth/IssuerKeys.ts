import { Clock, Deferred, Effect, Exit, Metric, Schema, type Scope } from "effect"
import type { CryptoKey } from "jose"
import type { Algorithm } from "../../policy/AuthSettings.ts"
import type { Egress } from "../../services/Egress.ts"
import { GatewayError } from "../GatewayError.ts"
import type { IdentityProvider } from "./CallerAuth.ts"
import * as Claims from "./Claims.ts"
import * as KeySet from "./KeySet.ts"

/** For each of the two documents: what is slower or larger is none. */
const fetchTimeoutMs = 3000
const maxDocumentBytes = 262_144
/**
 * After an attempt nobody asks again for so long, whatever it brought: forged key ids cost the provider nothing more.
 */
const minRefreshIntervalMs = 5000

/** The signing keys of one issuer, found by its discovery document, and kept. */
export interface IssuerKeys {
  /**
   * The set that decides at this moment without asking anybody; a token that it verified need not be verified again.
   */
  readonly currentSet: (now: number) => KeySet.KeySet | undefined
  /**
   * The key of that id, and the set that it is of. Asks the issuer when its keys are old, or the id is not among them.
   */
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

/** Loads run in `scope`: when the client that caused one hangs up, the others still wait for it. */
export const make = (provider: IdentityProvider, egress: Egress["Service"], scope: Scope.Scope): IssuerKeys => {
  let keys: KeySet.KeySet | undefined
  let staleAt = 0
  let nextRefreshAt = 0
  /** Why the last attempt brought nothing. */
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
      ({ message, reason }) => unavailable(`the ${what} cannot be had (${reason}): ${message}`)
    )
    if (status !== 200) return yield* Effect.fail(unavailable(`the ${what} is answered with status ${status}`))
    return Buffer.from(body).toString("utf8")
  })

  const load = Effect.gen(function* () {
    const text = yield* fetchDocument("discovery document", provider.discoveryUrl)
    const { issuer, jwks_uri } = yield* Effect.mapError(decodeDiscovery(text), () =>
      unavailable("the discovery document names no issuer and jwks_uri")
    )
    if (issuer !== provider.issuer) return yield* Effect.fail(wrongDiscoveryIssuer)
    const set = KeySet.parse(yield* fetchDocument("key set", jwks_uri))
    return set ?? (yield* Effect.fail(unavailable("the key set is not one")))
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
        // what is known stays in force: an issuer that is down locks nobody out whose key it has published before
        onFailure: ({ refusal, why }) =>
          Effect.gen(function* () {
            failure = refusal
            yield* Metric.update(refreshCounter("failed"), 1)
            yield* Effect.logWarning("the keys of the identity provider cannot be loaded", { why })
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

  /** The attempt that is under way, or a new one. */
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
      const attempted = yield* startRefresh
      // a key that is merely old is waited for once; while its issuer is down, it does meanwhile
      if (!known || failure === undefined) yield* Deferred.await(attempted)
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
      const downMeanwhile = failure !== undefined && (loading !== undefined || now < nextRefreshAt)
      return now < staleAt || downMeanwhile ? keys : undefined
    }
  }
}

const keysUnavailable = new GatewayError({
  code: "invalid_identity_token",
  message: "The identity token cannot be verified now: this gateway does not have the keys of the identity provider."
})

const unavailable = (why: string) => ({ why, refusal: keysUnavailable })

const wrongDiscoveryIssuer = {
  why: "the discovery document is of another issuer than the one that is configured",
  refusal: Claims.wrongIssuer
}
