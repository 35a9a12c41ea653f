import { Effect, Layer, Option, SubscriptionRef } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import * as ControlApp from "../../src/control/ControlApp.ts"
import { ControlHosts } from "../../src/control/http/KnownHosts.ts"
import { StudioOfEnvironment } from "../../src/control/services/StudioConnection.ts"
import { UpstreamUiOrigin } from "../../src/control/upstream-ui/UpstreamUiOrigin.ts"
import * as Retention from "../../src/gateway/usage/Retention.ts"
import { Guardrails } from "../../src/guardrails/Guardrails.ts"
import { StartupFrontDoor } from "../../src/policy/FrontDoor.ts"
import { compatLimits } from "../../src/policy/routes/CanonicalRoute.ts"
import { StartupUpstreams } from "../../src/policy/routes/StartupUpstreams.ts"
import { Conditions } from "../../src/process/Conditions.ts"
import { Followed } from "../../src/process/Followed.ts"
import { Lifecycle } from "../../src/process/Lifecycle.ts"
import { Readiness } from "../../src/process/Readiness.ts"
import { GatewaySettings } from "../../src/process/Settings.ts"
import type { Broker } from "../../src/services/Broker.ts"
import type { Redis } from "../../src/services/Redis.ts"
import { type Doors, isOfTasks, type Role, type TasksRole } from "../Doors.ts"
import * as EgressHttp from "../EgressHttp.ts"
import type { Settings } from "../Environment.ts"
import * as Listeners from "../Listeners.ts"
import * as Observability from "../Observability.ts"
import * as Start from "../Start.ts"
import * as Gateway from "./Gateway.ts"
import * as Messaging from "./Messaging.ts"
import * as Status from "./Status.ts"

/**
 * The whole program of a role. What is provided later is opened earlier and closed later: readiness turns false, then
 * (after the delay) the proxy listener drains, then the control listener goes, then the doors close.
 */
export const layer = (
  doors: Doors,
  settings: Settings
): Layer.Layer<never, Layer.Error<ReturnType<typeof ofTasks> | ReturnType<typeof operated>>> =>
  isOfTasks(doors.role) ? ofTasks(doors, doors.role, settings) : operated(doors, doors.role, settings)

/** The program of a role that works on tasks, or tells of them: there is nothing of operators' in it. */
const ofTasks = (doors: Doors, role: TasksRole, settings: Settings) =>
  beforeAll(settings).pipe(
    Layer.provide(tasks(role, settings)),
    Layer.provide(probes(settings).pipe(Layer.provide(Messaging.readiness))),
    Layer.provide(lifecycleOfRole),
    Layer.provide([doors.broker.layer, doors.redis.layer])
  )

const tasks = (
  role: TasksRole,
  settings: Settings
): Layer.Layer<never, Layer.Error<ReturnType<typeof Messaging.layer | typeof Status.all>>, Broker | Redis> => {
  switch (role) {
    case "messaging":
      return Messaging.layer(settings)
    case "status":
      return Status.status(settings)
    case "graph":
      return Status.graph(settings)
  }
}

/** The program of a role that operators decide about. */
const operated = (doors: Doors, role: Exclude<Role, TasksRole>, settings: Settings) =>
  beforeAll(settings).pipe(
    Layer.provide(listeners(role, settings)),
    Layer.provide(doors.example ? allOfTasks(settings).pipe(Layer.provide(doors.broker.layer)) : Layer.empty),
    Layer.provide(Start.prepare(settings)),
    Layer.provide([
      lifecycleOfRole,
      Conditions.layer,
      Start.vault(settings),
      gatewaySettings(settings),
      Layer.succeed(StartupUpstreams, doors.upstreams),
      Guardrails.layer,
      Layer.succeed(StudioOfEnvironment, settings.studio),
      Layer.succeed(StartupFrontDoor, settings.frontDoor)
    ]),
    Layer.provide([doors.database.layer, doors.redis.layer, doors.upstream.layer, EgressHttp.layer(settings.addresses)])
  )

/** Workers go first, while the hub still stores what they say at last. */
const allOfTasks = (settings: Settings) => Messaging.layer(settings).pipe(Layer.provide(Status.all(settings)))

const listeners = (role: Exclude<Role, TasksRole>, settings: Settings) => {
  switch (role) {
    case "control":
      return operatorApi(settings)
    case "gateway":
      return proxy(settings).pipe(Layer.provide(probes(settings)), Layer.provide(Readiness.layer("degraded")))
    case "all":
      return proxy(settings).pipe(
        Layer.provide(operatorApi(settings)),
        Layer.provide([Followed.layer, Readiness.layer("not_ready")])
      )
  }
}

const proxy = (settings: Settings) =>
  Listeners.proxy(settings.proxyAddress, drain(settings), settings.connections, settings.corsOrigins).pipe(
    Layer.provide([Gateway.layer, Retention.layer(settings.retention)]),
    Layer.provide(Observability.level(settings.logLevels.gateway_proxy))
  )

const operatorApi = (settings: Settings) =>
  control(HttpRouter.serve(ControlApp.layer, served), "/admin-ui/docs", settings).pipe(
    Layer.provide(upstreamUi(settings))
  )
const probes = (settings: Settings) =>
  control(HttpRouter.serve(ControlApp.probes, served), "/admin-ui/readyz", settings)

const served = { routerConfig: ControlApp.routerConfig, disableLogger: true, disableListenLog: true } as const

/** Provided, not merged: what `serve` gives out has its router in it, and the next listener would take that for its own. */
const control = <E, R>(listener: Layer.Layer<never, E, R>, entrance: string, settings: Settings) =>
  announced(entrance).pipe(
    Layer.provide(listener),
    Layer.provide(Layer.succeed(ControlHosts, [...settings.controlHosts, settings.controlAddress.host.toLowerCase()])),
    Layer.provide(Observability.level(settings.logLevels.gateway_api)),
    Layer.provide(Listeners.server(settings.controlAddress, "5 seconds", { requestWithin: "30 seconds" }))
  )

/** Opens the listener of the upstream's UI where the environment has an address for it, and says where browsers find it. */
const upstreamUi = (settings: Settings) =>
  Option.match(settings.upstreamUi, {
    onNone: () => Layer.empty,
    onSome: ({ address, publicOrigin }) =>
      Layer.unwrap(
        HttpServer.addressFormattedWith((bound) => {
          const origin = Option.getOrElse(publicOrigin, () => bound)
          return Effect.succeed(
            Layer.effect(UpstreamUiOrigin, Effect.as(Start.announce("ui", origin), Option.some(origin))).pipe(
              Layer.provide(HttpRouter.serve(ControlApp.upstreamUi(origin), served))
            )
          )
        })
      ).pipe(
        Layer.provide(Observability.level(settings.logLevels.gateway_api)),
        Layer.provide(Listeners.server(address, "5 seconds", { requestWithin: "60 seconds" }))
      )
  })

const announced = (entrance: string) =>
  Layer.effectDiscard(HttpServer.addressFormattedWith((address) => Start.announce("control", address + entrance)))

const drain = ({ drainSeconds }: Settings) => `${drainSeconds} seconds` as const

const lifecycleOfRole = Lifecycle.layer("starting")

/**
 * Built last, so closed first. Every listener is open by then, and not before then does the process say that it is
 * ready. At the end load balancers see it before anything else happens: what they send until they have looked is still
 * served, if the delay is as long as that takes.
 */
const beforeAll = ({ drainDelaySeconds }: Settings) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const lifecycle = yield* Lifecycle
      yield* SubscriptionRef.set(lifecycle, "serving")
      yield* Effect.addFinalizer(() =>
        Effect.logInfo("draining").pipe(
          Effect.andThen(SubscriptionRef.set(lifecycle, "draining")),
          Effect.andThen(Effect.sleep(`${drainDelaySeconds} seconds`))
        )
      )
    })
  )

const gatewaySettings = (settings: Settings) =>
  Layer.succeed(GatewaySettings, {
    upstreamUiPaths: settings.upstreamUiPaths,
    directCompat: settings.directCompat,
    directCompatPaths: settings.directCompatPaths,
    directCompatOwnership: settings.directCompatOwnership,
    directCompatLimits: { ...compatLimits, ...settings.routeLimits },
    workerToken: settings.workerToken,
    maxBufferedRequests: settings.maxBufferedRequests,
    maxInflightBufferBytes: settings.maxInflightBufferBytes
  })
