import { Clock, Context, Effect, Layer, Option, Result, Schema } from "effect"
import { compactVerify } from "jose"
import type { RawHeaders } from "../../http/Headers.ts"
import { Algorithm } from "../../policy/AuthSettings.ts"
import { Egress } from "../../services/Egress.ts"
import { digestHex } from "../../state/Secret.ts"
import { GatewayError } from "../GatewayError.ts"
import type { CallerAuth, IdentityProvider } from "./CallerAuth.ts"
import * as Claims from "./Claims.ts"
import type { Identity } from "./Identity.ts"
import * as IdentityToken from "./IdentityToken.ts"
import * as IssuerKeys from "./IssuerKeys.ts"
import type { KeySet } from "./KeySet.ts"
import * as TrustedHeaders from "./TrustedHeaders.ts"

const maxCachedTokens = 10_000

/** A verified token. It is verified again when `set` is no longer the issuer's current key set. */
interface CachedToken extends Claims.VerifiedIdentity {
  readonly set: KeySet
}

const isAlgorithm = Schema.is(Algorithm)

/** The headers of a trusted gateway take precedence: if they are present, a token is ignored. */
export class IdentityVerifier extends Context.Service<
  IdentityVerifier,
  {
    /** Verifies without waiting; `undefined` for a token that is not cached, which needs `verify`. */
    readonly verifySync: (
      headers: RawHeaders,
      callerAuth: CallerAuth,
      now: number
    ) => Result.Result<Identity, GatewayError> | undefined
    readonly verify: (headers: RawHeaders, callerAuth: CallerAuth) => Effect.Effect<Identity, GatewayError>
  }
>()("svc/gateway/IdentityVerifier") {
  static readonly layer = Layer.effect(
    IdentityVerifier,
    Effect.gen(function* () {
      const egress = yield* Egress
      const scope = yield* Effect.scope
      const tokens = new Map<string, CachedToken>()
      let fingerprint = ""
      let issuer: { readonly provider: string; readonly keys: IssuerKeys.IssuerKeys } | undefined

      const issuerKeysOf = (provider: IdentityProvider): IssuerKeys.IssuerKeys => {
        const cacheKey = `${provider.discoveryUrl} ${provider.issuer} ${provider.keysTtlMs}`
        if (issuer?.provider !== cacheKey) {
          issuer = { provider: cacheKey, keys: IssuerKeys.make(provider, egress, scope) }
        }
        return issuer.keys
      }

      const cachedIdentity = (
        token: IdentityToken.IdentityToken,
        callerAuth: CallerAuth,
        provider: IdentityProvider,
        now: number
      ) => {
        if (fingerprint !== callerAuth.fingerprint) {
          fingerprint = callerAuth.fingerprint
          tokens.clear()
        }
        const digest = digestHex(token.raw)
        const cached = tokens.get(digest)
        if (cached === undefined) return undefined
        if (cached.expiresAt > now && cached.set === issuerKeysOf(provider).currentSet(now)) return cached.identity
        tokens.delete(digest)
        return undefined
      }

      const cacheToken = (token: IdentityToken.IdentityToken, callerAuth: CallerAuth, cached: CachedToken) => {
        // The settings may have changed during verification.
        if (fingerprint !== callerAuth.fingerprint) return
        tokens.set(digestHex(token.raw), cached)
        if (tokens.size > maxCachedTokens) {
          const [oldest] = tokens.keys()
          if (oldest !== undefined) tokens.delete(oldest)
        }
      }

      const verifyToken = Effect.fnUntraced(function* (
        token: IdentityToken.IdentityToken,
        callerAuth: CallerAuth,
        provider: IdentityProvider
      ) {
        const { alg, kid, raw } = token
        if (kid === undefined || !isAlgorithm(alg) || !provider.algorithms.includes(alg)) {
          return yield* Effect.fail(Claims.invalid)
        }
        const set = yield* issuerKeysOf(provider).setFor(kid)
        const { payload } = yield* Effect.tryPromise({
          try: () => compactVerify(raw, set.select, { algorithms: [alg] }),
          catch: () => Claims.invalid
        })
        const now = yield* Clock.currentTimeMillis
        const verified = yield* Effect.fromResult(
          Claims.check(decodePayload(payload), provider, callerAuth.requirements, now)
        )
        cacheToken(token, callerAuth, { ...verified, set })
        return verified.identity
      })

      return IdentityVerifier.of({
        verifySync: (headers, callerAuth, now) => {
          const { provider, requirements, trustedSecret, unreadable } = callerAuth
          if (unreadable === true) return Result.fail(unreadableSettings)
          if (trustedSecret !== undefined && TrustedHeaders.arePresent(headers)) {
            return trustedSecret._tag === "Present"
              ? TrustedHeaders.verify(headers, trustedSecret.credential, requirements, now)
              : Result.fail(unreadableSecret)
          }
          if (provider === undefined) return Result.fail(TrustedHeaders.missingIdentity)
          const token = IdentityToken.fromHeaders(headers)
          if (Result.isFailure(token)) return Result.fail(token.failure)
          const identity = cachedIdentity(token.success, callerAuth, provider, now)
          return identity === undefined ? undefined : Result.succeed(identity)
        },
        verify: (headers, callerAuth) =>
          Effect.gen(function* () {
            const { provider } = callerAuth
            if (provider === undefined) return yield* Effect.fail(TrustedHeaders.missingIdentity)
            return yield* verifyToken(
              yield* Effect.fromResult(IdentityToken.fromHeaders(headers)),
              callerAuth,
              provider
            )
          })
      })
    })
  )
}

const decodeClaims = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))
const decodePayload = (payload: Uint8Array): unknown =>
  Option.getOrUndefined(decodeClaims(Buffer.from(payload).toString("utf8")))

const unreadableSettings = new GatewayError({
  code: "control_state_unavailable",
  message:
    "This version of the gateway cannot decode the authentication settings. An operator can update the gateway or save the settings again."
})

const unreadableSecret = new GatewayError({
  code: "invalid_configuration",
  message: "The secret of the trusted gateway cannot be decrypted. An operator finds the reason in the log."
})
