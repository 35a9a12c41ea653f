import { Clock, Deferred, Effect, Exit, Metric, Schema, type Scope } from "effect"
import type { CryptoKey } from "jose"
import type { Algorithm } from "../../policy/FrontDoor.ts"
import type { Egress } from "../../services/Egress.ts"
import { GatewayError } from "../GatewayError.ts"
import * as Claims from "./Claims.ts"
import type { IdentityProvider } from "./FrontDoor.ts"
import * as KeySet from "./KeySet.ts"

/** For each of the two documents: what is slower or larger is none. */
const withinMs = 3000
const maxBytes = 262_144
/**
 * After an attempt nobody asks again for so long, whatever it brought: forged key ids cost the provider nothing more.
 */
const restMs = 5000

/** The signing keys of one issuer, found by its discovery document, and kept. */
export interface IssuerKeys {
  /**
   * The set that decides at this moment without asking anybody; a token that it verified need not be verified again.
   */
  readonly current: (now: number) => KeySet.KeySet | undefined
  /**
   * The key of that id, and the set that it is of. Asks the issuer when its keys are old, or the id is not among them.
   */
  readonly find: (kid: string, alg: Algorithm) => Effect.Effect<Found, GatewayError>
}

export interface Found {
  readonly key: CryptoKey
  readonly set: KeySet.KeySet
}

const Discovery = Schema.fromJsonString(Schema.Struct({ issuer: Schema.String, jwks_uri: Schema.String }))
const decodeDiscovery = Schema.decodeUnknownEffect(Discovery)

const attempts = Metric.counter("gateway_identity_key_refreshes_total", {
  description: "Attempts to load the signing keys of the identity provider",
  incremental: true
})
const refreshes = (outcome: "loaded" | "failed") => Metric.withAttributes(attempts, { outcome })

/** Loads run in `scope`: when the client that caused one hangs up, the others still wait for it. */
export const make = (provider: IdentityProvider, egress: Egress["Service"], scope: Scope.Scope): IssuerKeys => {
  let keys: KeySet.KeySet | undefined
  let oldAt = 0
  let restsUntil = 0
  /** Why the last attempt brought nothing. */
  let failure: GatewayError | undefined
  let loading: Deferred.Deferred<void> | undefined

  const document = Effect.fnUntraced(function* (what: string, url: string) {
    const { body, status } = yield* Effect.mapError(
      egress.fetch({ method: "GET", url, headers: { accept: "application/json" }, withinMs, maxBytes }),
      ({ message, reason }) => unusable(`the ${what} cannot be had (${reason}): ${message}`)
    )
    if (status !== 200) return yield* Effect.fail(unusable(`the ${what} is answered with status ${status}`))
    return Buffer.from(body).toString("utf8")
  })

  const load = Effect.gen(function* () {
    const text = yield* document("discovery document", provider.discoveryUrl)
    const { issuer, jwks_uri } = yield* Effect.mapError(decodeDiscovery(text), () =>
      unusable("the discovery document names no issuer and jwks_uri")
    )
    if (issuer !== provider.issuer) return yield* Effect.fail(foreign)
    const set = KeySet.parse(yield* document("key set", jwks_uri))
    return set ?? (yield* Effect.fail(unusable("the key set is not one")))
  })

  const attempt = (done: Deferred.Deferred<void>) =>
    load.pipe(
      Effect.matchEffect({
        onSuccess: (set) =>
          Effect.gen(function* () {
            keys = set
            oldAt = (yield* Clock.currentTimeMillis) + provider.keysTtlMs
            failure = undefined
            yield* Metric.update(refreshes("loaded"), 1)
          }),
        // what is known stays in force: an issuer that is down locks nobody out whose key it has published before
        onFailure: ({ refusal, why }) =>
          Effect.gen(function* () {
            failure = refusal
            yield* Metric.update(refreshes("failed"), 1)
            yield* Effect.logWarning("the keys of the identity provider cannot be loaded", { why })
          })
      }),
      Effect.onExit(() =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          restsUntil = now + restMs
          loading = undefined
          Deferred.doneUnsafe(done, Exit.void)
        })
      )
    )

  /** The attempt that is under way, or a new one. */
  const begun = Effect.suspend(() => {
    if (loading !== undefined) return Effect.succeed(loading)
    const done = Deferred.makeUnsafe<void>()
    loading = done
    return Effect.as(Effect.forkIn(attempt(done), scope), done)
  })

  const find: IssuerKeys["find"] = Effect.fnUntraced(function* (kid, alg) {
    const now = yield* Clock.currentTimeMillis
    const known = keys?.has(kid) === true
    if ((!known || now >= oldAt) && (loading !== undefined || now >= restsUntil)) {
      const attempted = yield* begun
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
    find,
    current: (now) => {
      const downMeanwhile = failure !== undefined && (loading !== undefined || now < restsUntil)
      return now < oldAt || downMeanwhile ? keys : undefined
    }
  }
}

const keysUnknown = new GatewayError({
  code: "invalid_identity_token",
  message: "The identity token cannot be verified now: this gateway does not have the keys of the identity provider."
})

const unusable = (why: string) => ({ why, refusal: keysUnknown })

const foreign = {
  why: "the discovery document is of another issuer than the one that is configured",
  refusal: Claims.wrongIssuer
}
