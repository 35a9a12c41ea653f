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

/** How many verified tokens are remembered; the oldest goes first. */
const maxCachedTokens = 10_000

/** A token that was verified, and the keys of the time: what they no longer vouch for is verified again. */
interface CachedToken extends Claims.VerifiedIdentity {
  readonly set: KeySet
}

const isAlgorithm = Schema.is(Algorithm)

/**
 * Who a request comes from. The headers of a trusted gateway come before a token, and where they
 * are presented nothing else counts.
 */
export class IdentityVerifier extends Context.Service<
  IdentityVerifier,
  {
    /** At once, where nothing has to be computed elsewhere or asked for: all but a token that is new here. */
    readonly verifySync: (
      headers: RawHeaders,
      frontDoor: CallerAuth,
      now: number
    ) => Result.Result<Identity, GatewayError> | undefined
    /** Verifies the token that `known` has left open. */
    readonly verify: (headers: RawHeaders, frontDoor: CallerAuth) => Effect.Effect<Identity, GatewayError>
  }
>()("svc/gateway/IdentityVerifier") {
  static readonly layer = Layer.effect(
    IdentityVerifier,
    Effect.gen(function* () {
      const egress = yield* Egress
      const scope = yield* Effect.scope
      const tokens = new Map<string, CachedToken>()
      /** The settings under which the tokens were verified. */
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
        frontDoor: CallerAuth,
        provider: IdentityProvider,
        now: number
      ) => {
        if (fingerprint !== frontDoor.fingerprint) {
          fingerprint = frontDoor.fingerprint
          tokens.clear()
        }
        const digest = digestHex(token.raw)
        const remembered = tokens.get(digest)
        if (remembered === undefined) return undefined
        if (remembered.expiresAt > now && remembered.set === issuerKeysOf(provider).currentSet(now))
          return remembered.identity
        tokens.delete(digest)
        return undefined
      }

      const cacheToken = (token: IdentityToken.IdentityToken, frontDoor: CallerAuth, remembered: CachedToken) => {
        // the settings may have changed while the token was verified
        if (fingerprint !== frontDoor.fingerprint) return
        tokens.set(digestHex(token.raw), remembered)
        if (tokens.size > maxCachedTokens) {
          const [oldest] = tokens.keys()
          if (oldest !== undefined) tokens.delete(oldest)
        }
      }

      const verifyToken = Effect.fnUntraced(function* (
        token: IdentityToken.IdentityToken,
        frontDoor: CallerAuth,
        provider: IdentityProvider
      ) {
        const { alg, kid, raw } = token
        if (kid === undefined || !isAlgorithm(alg) || !provider.algorithms.includes(alg)) {
          return yield* Effect.fail(Claims.invalid)
        }
        const { key, set } = yield* issuerKeysOf(provider).findKey(kid, alg)
        const { payload } = yield* Effect.tryPromise({
          try: () => compactVerify(raw, key, { algorithms: [alg] }),
          catch: () => Claims.invalid
        })
        const now = yield* Clock.currentTimeMillis
        const proven = yield* Effect.fromResult(
          Claims.check(decodePayload(payload), provider, frontDoor.requirements, now)
        )
        cacheToken(token, frontDoor, { ...proven, set })
        return proven.identity
      })

      return IdentityVerifier.of({
        verifySync: (headers, frontDoor, now) => {
          const { provider, requirements, trustedSecret, unreadable } = frontDoor
          if (unreadable === true) return Result.fail(unreadableSettings)
          if (trustedSecret !== undefined && TrustedHeaders.arePresent(headers)) {
            return trustedSecret._tag === "Present"
              ? TrustedHeaders.verify(headers, trustedSecret.credential, requirements, now)
              : Result.fail(unreadableSecret)
          }
          if (provider === undefined) return Result.fail(TrustedHeaders.missingIdentity)
          const token = IdentityToken.fromHeaders(headers)
          if (Result.isFailure(token)) return Result.fail(token.failure)
          const identity = cachedIdentity(token.success, frontDoor, provider, now)
          return identity === undefined ? undefined : Result.succeed(identity)
        },
        verify: (headers, frontDoor) =>
          Effect.gen(function* () {
            const { provider } = frontDoor
            if (provider === undefined) return yield* Effect.fail(TrustedHeaders.missingIdentity)
            return yield* verifyToken(yield* Effect.fromResult(IdentityToken.fromHeaders(headers)), frontDoor, provider)
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
    "This version of the gateway cannot decode how callers must authenticate; an operator can update the gateway, or save the settings again."
})

const unreadableSecret = new GatewayError({
  code: "invalid_configuration",
  message: "The secret of the trusted gateway cannot be opened. An operator finds the reason in the log."
})
