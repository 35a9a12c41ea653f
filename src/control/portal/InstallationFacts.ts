import { Context, Effect, Option, Ref } from "effect"
import type { HttpServerRequest } from "effect/http"
import { requestHostname } from "../../http/RequestHost.ts"
import { type BoundAddress, GatewayAddress } from "../../process/GatewayAddress.ts"
import { ControlOrigin } from "../session/ControlOrigin.ts"
import { ListenerSessions } from "../session/ListenerSessions.ts"
import { cookieOf } from "../session/PresentedSession.ts"
import { sessionCandidates } from "../session/SessionCookie.ts"
import { StartupOidcClient } from "../sign-in/OidcClient.ts"

/** What the program knows of the installation when it starts. */
export interface InstallationSettings {
  /** The name of the environment, such as `production`. */
  readonly environment: Option.Option<string>
  readonly version: string
  /** The origin at which applications reach the gateway, where it differs from the address of the proxy listener. */
  readonly gatewayOrigin: Option.Option<string>
  /** Operators see and change tasks at this listener. */
  readonly hasTasks: boolean
}

export const InstallationOfEnvironment = Context.Reference<InstallationSettings>("svc/control/InstallationSettings", {
  defaultValue: () => ({ environment: Option.none(), version: "", gatewayOrigin: Option.none(), hasTasks: false })
})

/** What the page says of the installation to everybody, before anybody has signed in. */
export interface InstallationFacts {
  readonly environment: string | null
  readonly version: string
  readonly gateway_url: string | null
  readonly oidc: boolean
  readonly session: boolean
  readonly holders_only: boolean
  readonly tasks: boolean
}

/** Returns what makes the facts that a page for this request says. */
export const make = Effect.gen(function* () {
  const { environment, gatewayOrigin, hasTasks, version } = yield* InstallationOfEnvironment
  const origin = yield* ControlOrigin
  const listener = yield* ListenerSessions
  const oidc = Option.isSome(yield* StartupOidcClient)
  const address = yield* Effect.serviceOption(GatewayAddress)
  const bound = Option.match(address, { onNone: () => Effect.succeed(Option.none<BoundAddress>()), onSome: Ref.get })
  return ({ headers }: HttpServerRequest.HttpServerRequest): Effect.Effect<InstallationFacts> =>
    Effect.map(bound, (listening) => ({
      environment: Option.getOrNull(environment),
      version,
      gateway_url: Option.getOrElse(gatewayOrigin, () => originOf(listening, headers["host"])),
      oidc: oidc && !listener.holdersOnly,
      session: sessionCandidates(headers["cookie"], cookieOf(origin, listener).name).length > 0,
      holders_only: listener.holdersOnly,
      tasks: hasTasks
    }))
})

/** A listener on all addresses is reached by the name that led the browser to this machine. */
const originOf = (listening: Option.Option<BoundAddress>, host: string | undefined): string | null => {
  if (Option.isNone(listening)) return null
  const { port } = listening.value
  const isEverywhere = listening.value.host === "0.0.0.0" || /^[0:]+$/.test(listening.value.host)
  const name = isEverywhere ? requestHostname(host) || "127.0.0.1" : listening.value.host
  return `http://${name.includes(":") && !name.startsWith("[") ? `[${name}]` : name}:${port}`
}
