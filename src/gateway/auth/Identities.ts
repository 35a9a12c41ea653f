import { Clock, Context, Effect, Layer, Option, Result, Schema } from "effect"
import { compactVerify } from "jose"
import type { RawHeaders } from "../../http/Headers.ts"
import { Algorithm } from "../../policy/FrontDoor.ts"
import { Egress } from "../../services/Egress.ts"
import { digestHex } from "../../state/Secret.ts"
import { GatewayError } from "../GatewayError.ts"
import * as Claims from "./Claims.ts"
import type { FrontDoor, IdentityProvider } from "./FrontDoor.ts"
import type { Identity } from "./Identity.ts"
import * as IssuerKeys from "./IssuerKeys.ts"
import type { KeySet } from "./KeySet.ts"
import * as Token from "./Token.ts"
import * as TrustedHeaders from "./TrustedHeaders.ts"

/** How many verified tokens are remembered; the oldest goes first. */
const capacity = 10_000

/** A token that was verified, and the keys of the time: what they no longer vouch for is verified again. */
interface Remembered extends Claims.Proven {
  readonly set: KeySet
}

const isAlgorithm = Schema.is(Algorithm)

/**
 * Who a request comes from. The headers of a trusted gateway come before a token, and where they
 * are presented nothing else counts.
 */
export class Identities extends Context.Service<
  Identities,
  {
    /** At once, where nothing has to be computed elsewhere or asked for: all but a token that is new here. */
    readonly known: (
      headers: RawHeaders,
      frontDoor: FrontDoor,
      now: number
    ) => Result.Result<Identity, GatewayError> | undefined
    /** Verifies the token that `known` has left open. */
    readonly verify: (headers: RawHeaders, frontDoor: FrontDoor) => Effect.Effect<Identity, GatewayError>
  }
>()("svc/gateway/Identities") {
  static readonly layer = Layer.effect(
    Identities,
    Effect.gen(function* () {
      const egress = yield* Egress
      const scope = yield* Effect.scope
      const tokens = new Map<string, Remembered>()
      /** The settings under which the tokens were verified. */
      let fingerprint = ""
      let issuer: { readonly provider: string; readonly keys: IssuerKeys.IssuerKeys } | undefined

      const keysOf = (provider: IdentityProvider): IssuerKeys.IssuerKeys => {
        const same = `${provider.discoveryUrl} ${provider.issuer} ${provider.keysTtlMs}`
        if (issuer?.provider !== same) {
          issuer = { provider: same, keys: IssuerKeys.make(provider, egress, scope) }
        }
        return issuer.keys
      }

      const recall = (token: Token.Token, frontDoor: FrontDoor, provider: IdentityProvider, now: number) => {
        if (fingerprint !== frontDoor.fingerprint) {
          fingerprint = frontDoor.fingerprint
          tokens.clear()
        }
        const digest = digestHex(token.raw)
        const remembered = tokens.get(digest)
        if (remembered === undefined) return undefined
        if (remembered.until > now && remembered.set === keysOf(provider).current(now)) return remembered.identity
        tokens.delete(digest)
        return undefined
      }

      const remember = (token: Token.Token, frontDoor: FrontDoor, remembered: Remembered) => {
        // the settings may have changed while the token was verified
        if (fingerprint !== frontDoor.fingerprint) return
        tokens.set(digestHex(token.raw), remembered)
        if (tokens.size > capacity) {
          const [oldest] = tokens.keys()
          if (oldest !== undefined) tokens.delete(oldest)
        }
      }

      const verified = Effect.fnUntraced(function* (
        token: Token.Token,
        frontDoor: FrontDoor,
        provider: IdentityProvider
      ) {
        const { alg, kid, raw } = token
        if (kid === undefined || !isAlgorithm(alg) || !provider.algorithms.includes(alg)) {
          return yield* Effect.fail(Claims.invalid)
        }
        const { key, set } = yield* keysOf(provider).find(kid, alg)
        const { payload } = yield* Effect.tryPromise({
          try: () => compactVerify(raw, key, { algorithms: [alg] }),
          catch: () => Claims.invalid
        })
        const now = yield* Clock.currentTimeMillis
        const proven = yield* Effect.fromResult(Claims.check(read(payload), provider, frontDoor.rules, now))
        remember(token, frontDoor, { ...proven, set })
        return proven.identity
      })

      return Identities.of({
        known: (headers, frontDoor, now) => {
          const { provider, rules, trustedSecret, unreadable } = frontDoor
          if (unreadable === true) return Result.fail(unreadableSettings)
          if (trustedSecret !== undefined && TrustedHeaders.present(headers)) {
            return trustedSecret._tag === "Present"
              ? TrustedHeaders.verify(headers, trustedSecret.credential, rules, now)
              : Result.fail(unreadableSecret)
          }
          if (provider === undefined) return Result.fail(TrustedHeaders.missing)
          const token = Token.presented(headers)
          if (Result.isFailure(token)) return Result.fail(token.failure)
          const identity = recall(token.success, frontDoor, provider, now)
          return identity === undefined ? undefined : Result.succeed(identity)
        },
        verify: (headers, frontDoor) =>
          Effect.gen(function* () {
            const { provider } = frontDoor
            if (provider === undefined) return yield* Effect.fail(TrustedHeaders.missing)
            return yield* verified(yield* Effect.fromResult(Token.presented(headers)), frontDoor, provider)
          })
      })
    })
  )
}

const decodeClaims = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))
const read = (payload: Uint8Array): unknown =>
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
