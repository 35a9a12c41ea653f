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
    readonly delegated: (credential: Redacted.Redacted) => Result.Result<Destination, GatewayError>
  }
>()("svc/gateway/Destinations") {
  static readonly layer = Layer.effect(
    Destinations,
    Effect.gen(function* () {
      const control = yield* ControlState
      const settings = yield* GatewaySettings

      const upstream = (): Result.Result<Place, GatewayError> => {
        const { provider } = control.snapshot()
        if (provider === "unreadable") return Result.fail(unreadableProvider)
        return Result.succeed(
          Option.match(provider, {
            onNone: () => ({
              origin: settings.upstreamOrigin,
              style: authorizationBearer,
              ownHeader: undefined,
              own: unbound
            }),
            onSome: ({ credential, origin, style }) => ({ origin, style, ownHeader: headerOf(style), own: credential })
          })
        )
      }

      /** The provider's header stays the gateway's own on the way to another upstream, too. */
      const elsewhere = (origin: string, credential: Redacted.Redacted): Destination => {
        const { provider } = control.snapshot()
        const style =
          provider === "unreadable"
            ? authorizationBearer
            : Option.match(provider, {
                onNone: () => authorizationBearer,
                onSome: ({ style }) => style
              })
        return { origin, style: authorizationBearer, ownHeader: headerOf(style), credential }
      }

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
          : Result.map(presentable(credential), (secret) => elsewhere(origin, secret))

      return Destinations.of({
        delegated: (credential) => Result.map(upstream(), (place) => destinationAt(place, credential)),
        find: (target, key) => {
          if (target.service !== undefined) return registered(target.service.service)
          if (target.provider === "compat") {
            return Option.match(settings.directCompat, {
              onNone: () => Result.fail(compatUnset),
              onSome: ({ origin, serviceKey }) => Result.succeed(elsewhere(origin, serviceKey))
            })
          }
          return Result.flatMap(upstream(), (place) => {
            const order = [
              mapped(key?.keyMapping ?? unbound),
              mapped(key?.projectMapping ?? unbound),
              place.own,
              startupFallback
            ]
            return Result.map(presentable(resolve(order, place.origin)), (credential) =>
              destinationAt(place, credential)
            )
          })
        }
      })
    })
  )
}

/** Where the upstream is, and the credential of its row. */
interface Place extends Omit<Destination, "credential"> {
  readonly own: BoundCredential
}

const destinationAt = ({ origin, ownHeader, style }: Place, credential: Redacted.Redacted): Destination => ({
  origin,
  style,
  ownHeader,
  credential
})

const headerOf = (style: CredentialStyle): string | undefined =>
  style._tag === "CustomHeader" ? style.name.toLowerCase() : undefined

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

const unreadableProvider = new GatewayError({
  code: "invalid_configuration",
  message:
    "The provider row of the upstream cannot be read by this version of the gateway, so nobody knows where this request should go. An operator finds the row in the log."
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
