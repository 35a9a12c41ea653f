import { Clock, Context, Effect, Layer, Result } from "effect"
import type { RawHeaders } from "../../http/Headers.ts"
import * as IssuerKeys from "../../identity/IssuerKeys.ts"
import type { KeySet } from "../../identity/KeySet.ts"
import * as SignedToken from "../../identity/SignedToken.ts"
import { Egress } from "../../services/Egress.ts"
import { digestHex } from "../../state/Secret.ts"
import { GatewayError } from "../GatewayError.ts"
import type { CallerAuth } from "./CallerAuth.ts"
import * as Claims from "./Claims.ts"
import type { Identity } from "./Identity.ts"
import * as IdentityToken from "./IdentityToken.ts"
import * as TrustedHeaders from "./TrustedHeaders.ts"

/** Verifies user identities. If signed headers of a trusted gateway are present, an identity token is ignored. */
export class IdentityVerifier extends Context.Service<
  IdentityVerifier,
  {
    /** Verifies synchronously. Returns `undefined` for a token that is not cached. Then call `verify`. */
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
      const tokens = new TokenCache()
      const issuerKeysOf = IssuerKeys.makeCurrent(egress, scope)

      return IdentityVerifier.of({
        verifySync: (headers, callerAuth, now) => {
          const { provider } = callerAuth
          const trusted = verifyTrustedHeaders(headers, callerAuth, now)
          if (trusted !== undefined) return trusted
          if (provider === undefined) return Result.fail(TrustedHeaders.missingIdentity)
          const token = IdentityToken.fromHeaders(headers)
          if (Result.isFailure(token)) return Result.fail(token.failure)
          const identity = tokens.find(token.success.raw, callerAuth, now, issuerKeysOf(provider).currentSet(now))
          return identity === undefined ? undefined : Result.succeed(identity)
        },
        verify: Effect.fn("IdentityVerifier.verify")(function* (headers, callerAuth) {
          const { provider, requirements } = callerAuth
          if (provider === undefined) return yield* Effect.fail(TrustedHeaders.missingIdentity)
          const token = yield* Effect.fromResult(IdentityToken.fromHeaders(headers))
          const { claims, set } = yield* Effect.mapError(
            SignedToken.verify(token, provider, issuerKeysOf(provider)),
            Claims.refusalOf
          )
          const now = yield* Clock.currentTimeMillis
          const verified = yield* Effect.fromResult(Claims.check(claims, provider, requirements, now))
          tokens.add(token.raw, callerAuth, { ...verified, set })
          return verified.identity
        })
      })
    })
  )
}

/** Returns `undefined` if the request has no signed identity headers. It must then carry an identity token. */
const verifyTrustedHeaders = (
  headers: RawHeaders,
  { requirements, trustedSecret, unreadable }: CallerAuth,
  now: number
): Result.Result<Identity, GatewayError> | undefined => {
  if (unreadable === true) return Result.fail(unreadableSettings)
  if (trustedSecret === undefined || !TrustedHeaders.arePresent(headers)) return undefined
  return trustedSecret._tag === "Present"
    ? TrustedHeaders.verify(headers, trustedSecret.credential, requirements, now)
    : Result.fail(unreadableSecret)
}

const maxCachedTokens = 10_000

/** A verified token. It is verified again once `set` is no longer the issuer's current key set. */
interface CachedToken extends Claims.VerifiedIdentity {
  readonly set: KeySet
}

/** Tokens that were verified under the current settings. */
class TokenCache {
  readonly #tokens = new Map<string, CachedToken>()
  #fingerprint = ""

  find(raw: string, { fingerprint }: CallerAuth, now: number, currentSet: KeySet | undefined) {
    if (this.#fingerprint !== fingerprint) {
      this.#fingerprint = fingerprint
      this.#tokens.clear()
    }
    const digest = digestHex(raw)
    const cached = this.#tokens.get(digest)
    if (cached === undefined) return undefined
    if (cached.expiresAt > now && cached.set === currentSet) return cached.identity
    this.#tokens.delete(digest)
    return undefined
  }

  add(raw: string, { fingerprint }: CallerAuth, token: CachedToken): void {
    // The settings may have changed while the token was verified.
    if (this.#fingerprint !== fingerprint) return
    this.#tokens.set(digestHex(raw), token)
    if (this.#tokens.size > maxCachedTokens) {
      const [oldest] = this.#tokens.keys()
      if (oldest !== undefined) this.#tokens.delete(oldest)
    }
  }
}

const unreadableSettings = new GatewayError({
  code: "control_state_unavailable",
  message:
    "This version of the gateway cannot decode the authentication settings. An operator can update the gateway or save the settings again."
})

const unreadableSecret = new GatewayError({
  code: "invalid_configuration",
  message: "The secret of the trusted gateway cannot be decrypted. An operator finds the reason in the log."
})
