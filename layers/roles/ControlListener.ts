import { Layer } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { ControlHosts } from "../../src/control/http/KnownHosts.ts"
import * as Probes from "../../src/control/http/Probes.ts"
import type { Settings } from "../Environment.ts"
import * as Listeners from "../Listeners.ts"
import * as Observability from "../Observability.ts"
import * as Startup from "../Startup.ts"

/** Serve options of the control listener: its path rules, without Effect's own request logs. */
export const serveOptions = { routerConfig: Probes.routerConfig, disableLogger: true, disableListenLog: true } as const

/**
 * `listener` is provided, not merged: the output of `serve` contains its router, which the next listener would
 * otherwise reuse.
 */
export const controlListener = <E, R>(listener: Layer.Layer<never, E, R>, announcedPath: string, settings: Settings) =>
  announce(announcedPath).pipe(
    Layer.provide(listener),
    Layer.provide(Layer.succeed(ControlHosts, [...settings.controlHosts, settings.controlAddress.host.toLowerCase()])),
    Layer.provide(Observability.minimumLevel(settings.logLevels.gateway_api)),
    Layer.provide(Listeners.serverLayer(settings.controlAddress, "5 seconds", { requestTimeout: "30 seconds" }))
  )

const announce = (entrance: string) =>
  Layer.effectDiscard(
    HttpServer.addressFormattedWith((address) => Startup.announceListener("control", address + entrance))
  )

/** The control listener of a role without the operator API: probes and metrics. */
export const probes = (settings: Settings) =>
  controlListener(HttpRouter.serve(Probes.layer, serveOptions), "/admin-ui/readyz", settings)
