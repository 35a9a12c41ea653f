import { Effect, Layer } from "effect"
import { StudioOfEnvironment } from "../../src/control/services/StudioConnection.ts"
import { Guardrails } from "../../src/guardrails/Guardrails.ts"
import { StartupFrontDoor } from "../../src/policy/FrontDoor.ts"
import { compatLimits } from "../../src/policy/routes/CanonicalRoute.ts"
import { StartupUpstreams } from "../../src/policy/routes/StartupUpstreams.ts"
import { Conditions } from "../../src/process/Conditions.ts"
import { Followed } from "../../src/process/Followed.ts"
import { Readiness } from "../../src/process/Readiness.ts"
import { GatewaySettings } from "../../src/process/Settings.ts"
import type { Role, TasksRole } from "../DoorOptions.ts"
import type { Doors } from "../Doors.ts"
import * as EgressHttp from "../EgressHttp.ts"
import type { Settings } from "../Environment.ts"
import { probes } from "./ControlListener.ts"
import * as Installation from "./Installation.ts"
import * as Serving from "./Serving.ts"

type OperatedRole = Exclude<Role, TasksRole>

/** The program of a role that operators decide about. */
export const layer = (doors: Doors, role: OperatedRole, settings: Settings) =>
  Serving.layer(settings).pipe(
    Layer.provide(listeners(role, settings)),
    Layer.provide(doors.example ? example(settings).pipe(Layer.provide(doors.broker.layer)) : Layer.empty),
    Layer.provide(Installation.prepare(settings)),
    Layer.provide([
      Serving.lifecycle,
      Conditions.layer,
      Installation.vault(settings),
      gatewaySettings(settings),
      Layer.succeed(StartupUpstreams, doors.upstreams),
      Guardrails.layer,
      Layer.succeed(StudioOfEnvironment, settings.studio),
      Layer.succeed(StartupFrontDoor, settings.frontDoor)
    ]),
    Layer.provide([doors.database.layer, doors.redis.layer, doors.upstream.layer, EgressHttp.layer(settings.addresses)])
  )

// each is loaded by the roles that need it
const proxy = (settings: Settings) =>
  Layer.unwrap(Effect.promise(() => import("./Proxy.ts").then(({ layer }) => layer(settings))))
const operatorApi = (settings: Settings) =>
  Layer.unwrap(Effect.promise(() => import("./OperatorApi.ts").then(({ layer }) => layer(settings))))
const example = (settings: Settings) =>
  Layer.unwrap(Effect.promise(() => import("./Tasks.ts").then(({ all }) => all(settings))))

const listeners = (role: OperatedRole, settings: Settings) => {
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
