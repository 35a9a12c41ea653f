import { Context, Effect, Layer, Option, type Redacted, Result } from "effect"
import { ControlState } from "./ControlState.ts"
import { GatewayError } from "./GatewayError.ts"
import type { KeyRecord } from "./KeyRecord.ts"
import { authorizationBearer, type CredentialStyle } from "./model/CredentialStyle.ts"
import type { Service } from "./model/ServiceTable.ts"
import { GatewaySettings } from "./model/Settings.ts"
import {
  type BoundCredential,
  ofEnvironment,
  resolve,
  type StoredCredential,
  unbound
} from "./model/StoredCredential.ts"
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

      const startupFallback = ofEnvironment(settings.upstreamServiceKey, settings.upstreamOrigin)

      /** A mapping without an origin was stored while UPSTREAM_BASE_URL was the upstream. */
      const mapped = ({ origin, secret }: BoundCredential): BoundCredential => ({
        secret,
        origin: origin ?? settings.upstreamOrigin
      })

      /** A service's own credential, and no other. */
      const registered = ({ credential, origin }: Service): Result.Result<Destination, GatewayError> =>
        origin === undefined
          ? Result.fail(noCredential)
          : Result.map(presentable(credential), (secret) => ({
              ...upstream(),
              origin,
              style: authorizationBearer,
              credential: secret
            }))

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
          const place = upstream()
          const order = [
            mapped(key?.keyMapping ?? unbound),
            mapped(key?.projectMapping ?? unbound),
            Option.match(control.snapshot().provider, {
              onNone: () => unbound,
              onSome: ({ credential }) => credential
            }),
            startupFallback
          ]
          return Result.map(presentable(resolve(order, place.origin)), (credential) => ({ ...place, credential }))
        }
      })
    })
  )
}

const presentable = (stored: StoredCredential): Result.Result<Redacted.Redacted, GatewayError> => {
  switch (stored._tag) {
    case "Present":
      return Result.succeed(stored.credential)
    case "Missing":
      return Result.fail(noCredential)
    case "Unreadable":
      return Result.fail(unreadableCredential)
    case "OtherOrigin":
      return Result.fail(otherOrigin)
  }
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

const otherOrigin = new GatewayError({
  code: "invalid_configuration",
  message:
    "The upstream credential for this request was stored for another address than the upstream has now, and is not sent there. An operator can store it anew; UPSTREAM_SERVICE_KEY goes to UPSTREAM_BASE_URL alone."
})

const compatUnset = new GatewayError({
  code: "invalid_configuration",
  message:
    "The direct compatible upstream is not configured: it needs DIRECT_COMPAT_BASE_URL and DIRECT_COMPAT_SERVICE_KEY."
})
