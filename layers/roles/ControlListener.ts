import { Layer } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { ControlHosts } from "../../src/control/http/KnownHosts.ts"
import * as Probes from "../../src/control/http/Probes.ts"
import type { Settings } from "../Environment.ts"
import * as Listeners from "../Listeners.ts"
import * as Observability from "../Observability.ts"
import * as Start from "../Start.ts"

/** How the control listener reads paths, and that it logs by its own means. */
export const served = { routerConfig: Probes.routerConfig, disableLogger: true, disableListenLog: true } as const

/** Provided, not merged: what `serve` gives out has its router in it, and the next listener would take that for its own. */
export const control = <E, R>(listener: Layer.Layer<never, E, R>, entrance: string, settings: Settings) =>
  announced(entrance).pipe(
    Layer.provide(listener),
    Layer.provide(Layer.succeed(ControlHosts, [...settings.controlHosts, settings.controlAddress.host.toLowerCase()])),
    Layer.provide(Observability.level(settings.logLevels.gateway_api)),
    Layer.provide(Listeners.server(settings.controlAddress, "5 seconds", { requestWithin: "30 seconds" }))
  )

const announced = (entrance: string) =>
  Layer.effectDiscard(HttpServer.addressFormattedWith((address) => Start.announce("control", address + entrance)))

/** The control listener of a role without the operator API. */
export const probes = (settings: Settings) =>
  control(HttpRouter.serve(Probes.layer, served), "/admin-ui/readyz", settings)
