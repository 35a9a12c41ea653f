import { Effect, Layer, Option, SubscriptionRef } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import * as ControlApp from "../../src/control/ControlApp.ts"
import { Readiness } from "../../src/control/Readiness.ts"
import { StudioOfEnvironment } from "../../src/control/StudioConnection.ts"
import { Followed } from "../../src/gateway/model/Followed.ts"
import { StartupFrontDoor } from "../../src/gateway/model/FrontDoor.ts"
import { Lifecycle } from "../../src/gateway/model/Lifecycle.ts"
import { GatewaySettings } from "../../src/gateway/model/Settings.ts"
import { Guardrails } from "../../src/guardrails/Guardrails.ts"
import type { Doors, Role } from "../Doors.ts"
import * as EgressHttp from "../EgressHttp.ts"
import type { Settings } from "../Environment.ts"
import * as Listeners from "../Listeners.ts"
import * as Observability from "../Observability.ts"
import * as Start from "../Start.ts"
import * as Gateway from "./Gateway.ts"
import * as Messaging from "./Messaging.ts"

/**
 * The whole program of a role. What is provided later is opened earlier and closed later: readiness turns false, then
 * (after the delay) the proxy listener drains, then the control listener goes, then the doors close.
 */
export const layer = (
  doors: Doors,
  settings: Settings
): Layer.Layer<never, Layer.Error<ReturnType<typeof workers> | ReturnType<typeof operated>>> =>
  doors.role === "messaging" ? workers(doors, settings) : operated(doors, doors.role, settings)

/** The program of the role `messaging`: there is nothing of operators' in it. */
const workers = (doors: Doors, settings: Settings) =>
  beforeAll(settings).pipe(
    Layer.provide(Messaging.layer),
    Layer.provide(probes(settings).pipe(Layer.provide(Messaging.readiness))),
    Layer.provide(Lifecycle.layer),
    Layer.provide(doors.broker.layer)
  )

/** The program of a role that operators decide about. */
const operated = (doors: Doors, role: Exclude<Role, "messaging">, settings: Settings) =>
  beforeAll(settings).pipe(
    Layer.provide(listeners(role, settings)),
    Layer.provide(role === "all" ? Messaging.layer.pipe(Layer.provide(doors.broker.layer)) : Layer.empty),
    Layer.provide(Start.prepare(settings)),
    Layer.provide([
      Lifecycle.layer,
      Start.vault(settings),
      gatewaySettings(doors, settings),
      Guardrails.layer,
      Layer.succeed(StudioOfEnvironment, settings.studio),
      Layer.succeed(StartupFrontDoor, settings.frontDoor)
    ]),
    Layer.provide([doors.database.layer, doors.redis.layer, doors.upstream.layer, EgressHttp.layer(settings.addresses)])
  )

const listeners = (role: Exclude<Role, "messaging">, settings: Settings) => {
  switch (role) {
    case "control":
      return operatorApi(settings)
    case "gateway":
      return proxy(settings).pipe(Layer.provide(probes(settings).pipe(Layer.provide(Readiness.layer))))
    case "all":
      return proxy(settings).pipe(Layer.provide(operatorApi(settings)), Layer.provide(Followed.layer))
  }
}

const proxy = (settings: Settings) =>
  Listeners.proxy(settings.proxyAddress, drain(settings)).pipe(
    Layer.provide(Gateway.layer),
    Layer.provide(Observability.level(settings.logLevels.gateway_proxy))
  )

const operatorApi = (settings: Settings) =>
  control(HttpRouter.serve(ControlApp.layer, served), "/admin-ui/docs", settings)
const probes = (settings: Settings) =>
  control(HttpRouter.serve(ControlApp.probes, served), "/admin-ui/readyz", settings)

const served = { routerConfig: ControlApp.routerConfig, disableLogger: true, disableListenLog: true } as const

const control = <E, R>(listener: Layer.Layer<never, E, R>, entrance: string, settings: Settings) =>
  Layer.mergeAll(listener, announced(entrance)).pipe(
    Layer.provide(Observability.level(settings.logLevels.gateway_api)),
    Layer.provide(Listeners.server(settings.controlAddress, "5 seconds"))
  )

const announced = (entrance: string) =>
  Layer.effectDiscard(HttpServer.addressFormattedWith((address) => Start.announce("control", address + entrance)))

const drain = ({ drainSeconds }: Settings) => `${drainSeconds} seconds` as const

/**
 * Built last, so closed first: load balancers see it before anything else happens. What they send until they have
 * looked is still served, if the delay is as long as that takes.
 */
const beforeAll = ({ drainDelaySeconds }: Settings) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const lifecycle = yield* Lifecycle
      yield* Effect.addFinalizer(() =>
        Effect.logInfo("draining").pipe(
          Effect.andThen(SubscriptionRef.set(lifecycle, "draining")),
          Effect.andThen(Effect.sleep(`${drainDelaySeconds} seconds`))
        )
      )
    })
  )

const gatewaySettings = (doors: Doors, settings: Settings) =>
  Layer.succeed(GatewaySettings, {
    upstreamOrigin: doors.upstreamOrigin,
    upstreamServiceKey: Option.orElse(settings.upstreamServiceKey, () => doors.simulatedCredential),
    upstreamUiPaths: settings.upstreamUiPaths,
    directCompat: settings.directCompat,
    workerToken: settings.workerToken,
    maxBufferedRequests: settings.maxBufferedRequests,
    maxInflightBufferBytes: settings.maxInflightBufferBytes
  })
