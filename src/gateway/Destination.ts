import { Context, Effect, Layer, Option, type Redacted, Result } from "effect"
import { ControlState } from "./ControlState.ts"
import * as Credentials from "./Credentials.ts"
import { GatewayError } from "./GatewayError.ts"
import type { KeyRecord } from "./KeyRecord.ts"
import { authorizationBearer, type CredentialStyle } from "./model/CredentialStyle.ts"
import { GatewaySettings } from "./model/Settings.ts"
import type { Target } from "./Target.ts"

/** The upstream of a request, and how the gateway identifies itself there. */
export interface Destination {
  readonly origin: string
  readonly style: CredentialStyle
  readonly credential: Redacted.Redacted
}

export class Destinations extends Context.Service<
  Destinations,
  {
    readonly find: (target: Target, key: KeyRecord) => Result.Result<Destination, GatewayError>
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
          onNone: () => ({ origin: settings.upstreamOrigin, style: authorizationBearer }),
          onSome: ({ origin, style }) => ({ origin, style })
        })

      return Destinations.of({
        delegated: (credential) => ({ ...upstream(), credential }),
        find: (target, key) => {
          if (target.provider === "compat") {
            return Option.match(settings.directCompat, {
              onNone: () => Result.fail(compatUnset),
              onSome: ({ origin, serviceKey }) =>
                Result.succeed({ origin, style: authorizationBearer, credential: serviceKey })
            })
          }
          const resolved = Credentials.resolve({
            keyMapping: key.keyMapping,
            projectMapping: key.projectMapping,
            providerDefault: Option.flatMap(control.snapshot().provider, ({ credential }) => credential),
            startupFallback: settings.upstreamServiceKey
          })
          return Option.match(resolved, {
            onNone: () => Result.fail(noCredential),
            onSome: ({ credential }) => Result.succeed({ ...upstream(), credential })
          })
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

const compatUnset = new GatewayError({
  code: "invalid_configuration",
  message:
    "The direct compatible upstream is not configured: it needs DIRECT_COMPAT_BASE_URL and DIRECT_COMPAT_SERVICE_KEY."
})
