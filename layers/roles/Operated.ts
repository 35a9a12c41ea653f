import { Layer } from "effect"
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

/**
 * Loads the program of a role that operators decide about. All of it is loaded before any of it starts: nothing that has
 * started waits for files.
 */
export const load = async (doors: Doors, role: OperatedRole, settings: Settings) => {
  const [listening, example] = await Promise.all([
    listeners(role, settings),
    doors.example ? import("./Tasks.ts").then(({ all }) => all(settings)) : Layer.empty
  ])
  return Serving.layer(settings).pipe(
    Layer.provide(listening),
    Layer.provide(example.pipe(Layer.provide(doors.broker.layer))),
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
}

const listeners = async (role: OperatedRole, settings: Settings) => {
  switch (role) {
    case "control":
      return operatorApi(settings)
    case "gateway":
      return (await proxy(settings)).pipe(Layer.provide(probes(settings)), Layer.provide(Readiness.layer("degraded")))
    case "all":
      return (await proxy(settings)).pipe(
        Layer.provide(await operatorApi(settings)),
        Layer.provide([Followed.layer, Readiness.layer("not_ready")])
      )
  }
}

const operatorApi = (settings: Settings) => import("./OperatorApi.ts").then(({ layer }) => layer(settings))
const proxy = (settings: Settings) => import("./Proxy.ts").then(({ layer }) => layer(settings))

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
