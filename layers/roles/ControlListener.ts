import { type Effect, Layer, Option } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { ControlHosts } from "../../src/control/http/KnownHosts.ts"
import * as Probes from "../../src/control/http/Probes.ts"
import { hostnameOf } from "../../src/http/RequestHost.ts"
import { shutdownSeconds } from "../../src/process/ShutdownTimeouts.ts"
import type { Settings } from "../Environment.ts"
import type { Address } from "../environment/Variables.ts"
import * as Listeners from "../Listeners.ts"
import * as Observability from "../Observability.ts"
import * as Startup from "../Startup.ts"

export const serveOptions = { routerConfig: Probes.routerConfig, disableLogger: true, disableListenLog: true } as const

/** `listener` is provided, not merged. Otherwise another listener would also use the router in its output. */
export const controlListener = <E, R>(
  listener: Layer.Layer<never, E, R>,
  announce: (address: string) => Effect.Effect<void>,
  settings: Settings,
  connectionLimits = Listeners.defaultConnectionLimits
) =>
  Layer.effectDiscard(HttpServer.addressFormattedWith(announce)).pipe(
    Layer.provide(listener),
    Layer.provide(Layer.succeed(ControlHosts, hostsOf(settings, settings.controlAddress, settings.controlOrigin))),
    Layer.provide(Observability.minimumLevel(settings.logLevels.gateway_api)),
    Layer.provide(
      Listeners.serverLayer(settings.controlAddress, `${shutdownSeconds.controlListener} seconds`, {
        requestTimeout: "30 seconds",
        connectionLimits
      })
    )
  )

/** The host names that browsers may use for a listener. */
export const hostsOf = (
  { controlHosts }: Settings,
  { host }: Address,
  origin: Option.Option<string>
): ReadonlyArray<string> => [...controlHosts, host.toLowerCase(), ...Option.toArray(origin).map(hostnameOf)]

/** Serves only probes and metrics, for roles without the operator API. */
export const probes = (settings: Settings) =>
  controlListener(
    HttpRouter.serve(Probes.layer, serveOptions),
    (address) => Startup.announceListener("control", `${address}/admin-ui/readyz`),
    settings
  )
