import { Layer } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { ControlHosts } from "../../src/control/http/KnownHosts.ts"
import * as Probes from "../../src/control/http/Probes.ts"
import { shutdownSeconds } from "../../src/process/ShutdownTimeouts.ts"
import type { Settings } from "../Environment.ts"
import * as Listeners from "../Listeners.ts"
import * as Observability from "../Observability.ts"
import * as Startup from "../Startup.ts"

export const serveOptions = { routerConfig: Probes.routerConfig, disableLogger: true, disableListenLog: true } as const

/** `listener` is provided, not merged. Otherwise another listener would also use the router in its output. */
export const controlListener = <E, R>(
  listener: Layer.Layer<never, E, R>,
  announcedPath: string,
  settings: Settings,
  connectionLimits = Listeners.defaultConnectionLimits
) =>
  announce(announcedPath).pipe(
    Layer.provide(listener),
    Layer.provide(Layer.succeed(ControlHosts, [...settings.controlHosts, settings.controlAddress.host.toLowerCase()])),
    Layer.provide(Observability.minimumLevel(settings.logLevels.gateway_api)),
    Layer.provide(
      Listeners.serverLayer(settings.controlAddress, `${shutdownSeconds.controlListener} seconds`, {
        requestTimeout: "30 seconds",
        connectionLimits
      })
    )
  )

const announce = (entrance: string) =>
  Layer.effectDiscard(
    HttpServer.addressFormattedWith((address) => Startup.announceListener("control", address + entrance))
  )

/** Serves only probes and metrics, for roles without the operator API. */
export const probes = (settings: Settings) =>
  controlListener(HttpRouter.serve(Probes.layer, serveOptions), "/admin-ui/readyz", settings)
