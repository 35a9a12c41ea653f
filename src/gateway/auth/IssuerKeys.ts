import { Clock, Deferred, Effect, Exit, Metric, Result, Schema, type Scope } from "effect"
import type { Egress } from "../../services/Egress.ts"
import { GatewayError } from "../GatewayError.ts"
import type { IdentityProvider } from "./CallerAuth.ts"
import * as Claims from "./Claims.ts"
import * as KeySet from "./KeySet.ts"

const fetchTimeoutMs = 3000
const maxDocumentBytes = 262_144
/** Clients can send unknown key ids. This interval limits how often they cause requests to the identity provider. */
const minRefreshIntervalMs = 5000

/** The cached signing keys of one identity provider. */
export interface IssuerKeys {
  /** Returns the key set unless a new fetch is due. Verified tokens stay accepted while this is the same object. */
  readonly currentSet: (now: number) => KeySet.KeySet | undefined
  /** Returns the key set. Fetches it again first if it is too old or lacks the key `kid`. */
  readonly setFor: (kid: string) => Effect.Effect<KeySet.KeySet, GatewayError>
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
  let failure: GatewayError | undefined
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
      return loaded?.set ?? (yield* Effect.fail(failure ?? Claims.invalid))
    })
  }
}

const Discovery = Schema.fromJsonString(Schema.Struct({ issuer: Schema.String, jwks_uri: Schema.String }))
const decodeDiscovery = Schema.decodeUnknownEffect(Discovery)

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
  const { issuer, jwks_uri } = yield* Effect.mapError(
    decodeDiscovery(yield* fetchDocument(egress, "discovery document", provider.discoveryUrl)),
    () => unavailable("the discovery document lacks issuer or jwks_uri")
  )
  if (issuer !== provider.issuer) return yield* Effect.fail(wrongDiscoveryIssuer)
  const text = yield* fetchDocument(egress, "key set", jwks_uri)
  if (text === before?.text) return before
  const set = yield* Effect.mapError(Effect.fromOption(KeySet.parse(text)), () =>
    unavailable("the document at jwks_uri is not a key set")
  )
  return { text, set }
})

const fetchDocument = Effect.fnUntraced(function* (egress: Egress["Service"], what: string, url: string) {
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

const unavailable = (why: string) => ({
  why,
  refusal: new GatewayError({
    code: "invalid_identity_token",
    message:
      "The gateway cannot verify the identity token now because it could not load the keys of the identity provider. Try again shortly."
  })
})

const wrongDiscoveryIssuer = {
  why: "the discovery document names another issuer than the configured one",
  refusal: Claims.wrongIssuer
}
