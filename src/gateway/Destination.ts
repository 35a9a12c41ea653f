import { Context, Effect, Layer, Option, type Redacted, Result } from "effect"
import { ControlState } from "./ControlState.ts"
import * as Credentials from "./Credentials.ts"
import { GatewayError } from "./GatewayError.ts"
import type { KeyRecord } from "./KeyRecord.ts"
import { authorizationBearer, type CredentialStyle } from "./model/CredentialStyle.ts"
import type { Service } from "./model/ServiceTable.ts"
import { GatewaySettings } from "./model/Settings.ts"
import { missing } from "./model/StoredCredential.ts"
import type { Routed } from "./Target.ts"

/** The upstream of a request, and how the gateway identifies itself there. */
export interface Destination {
  readonly origin: string
  readonly style: CredentialStyle
  /**
   * The header that the provider row puts its credential in, if it has one of its own: no client's comes through it.
   */
  readonly ownHeader: string | undefined
  readonly credential: Redacted.Redacted
}

export class Destinations extends Context.Service<
  Destinations,
  {
    /** Without a key the provider's own credential is used. */
    readonly find: (target: Routed, key: KeyRecord | undefined) => Result.Result<Destination, GatewayError>
    /** Direct mode: the client's own upstream credential, in the header that the provider row asks for. */
    readonly delegated: (credential: Redacted.Redacted) => Destination
  }
>()("svc/gateway/Destinations") {
  static readonly layer = Layer.effect(
    Destinations,
    Effect.gen(function* () {
      const control = yield* ControlState
      const settings = yield* GatewaySettings

      const upstream = () =>
        Option.match(control.snapshot().provider, {
          onNone: () => ({ origin: settings.upstreamOrigin, style: authorizationBearer, ownHeader: undefined }),
          onSome: ({ origin, style }) => ({
            origin,
            style,
            ownHeader: style._tag === "CustomHeader" ? style.name.toLowerCase() : undefined
          })
        })

      /** A service's own credential, and no other (reference §6.6). */
      const registered = ({ credential, origin }: Service): Result.Result<Destination, GatewayError> => {
        if (origin === undefined || credential._tag === "Missing") return Result.fail(noCredential)
        return credential._tag === "Unreadable"
          ? Result.fail(unreadableCredential)
          : Result.succeed({ ...upstream(), origin, style: authorizationBearer, credential: credential.credential })
      }

      return Destinations.of({
        delegated: (credential) => ({ ...upstream(), credential }),
        find: (target, key) => {
          if (target.service !== undefined) return registered(target.service.service)
          if (target.provider === "compat") {
            return Option.match(settings.directCompat, {
              onNone: () => Result.fail(compatUnset),
              onSome: ({ origin, serviceKey }) =>
                Result.succeed({ ...upstream(), origin, style: authorizationBearer, credential: serviceKey })
            })
          }
          const resolved = Credentials.resolve({
            keyMapping: key?.keyMapping ?? missing,
            projectMapping: key?.projectMapping ?? missing,
            providerDefault: Option.match(control.snapshot().provider, {
              onNone: () => missing,
              onSome: ({ credential }) => credential
            }),
            startupFallback: settings.upstreamServiceKey
          })
          switch (resolved._tag) {
            case "Present":
              return Result.succeed({ ...upstream(), credential: resolved.credential })
            case "Missing":
              return Result.fail(noCredential)
            case "Unreadable":
              return Result.fail(unreadableCredential)
          }
        }
      })
    })
  )
}

const noCredential = new GatewayError({
  code: "invalid_configuration",
  message:
    "No upstream credential is configured: neither for this key, nor its project, nor the provider, nor by UPSTREAM_SERVICE_KEY. An operator can set one."
})

const unreadableCredential = new GatewayError({
  code: "invalid_configuration",
  message: "The upstream credential for this request cannot be opened. An operator finds the reason in the log."
})

const compatUnset = new GatewayError({
  code: "invalid_configuration",
  message:
    "The direct compatible upstream is not configured: it needs DIRECT_COMPAT_BASE_URL and DIRECT_COMPAT_SERVICE_KEY."
})
