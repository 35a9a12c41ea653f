import { Effect, Layer, Option } from "effect"
import { StudioOfEnvironment } from "../../src/control/services/StudioConnection.ts"
import { Guardrails } from "../../src/guardrails/Guardrails.ts"
import * as LiveFeed from "../../src/live/LiveFeed.ts"
import { StartupAuthSettings } from "../../src/policy/AuthSettings.ts"
import { compatLimits } from "../../src/policy/routes/CanonicalRoute.ts"
import { StartupUpstreams } from "../../src/policy/routes/StartupUpstreams.ts"
import { AppliedEpoch } from "../../src/process/AppliedEpoch.ts"
import { Conditions } from "../../src/process/Conditions.ts"
import { GatewayAddress } from "../../src/process/GatewayAddress.ts"
import { GatewaySettings } from "../../src/process/GatewaySettings.ts"
import type { Lifecycle } from "../../src/process/Lifecycle.ts"
import { Readiness } from "../../src/process/Readiness.ts"
import type { Role, TasksRole } from "../DoorOptions.ts"
import type { Doors } from "../Doors.ts"
import * as EgressHttp from "../EgressHttp.ts"
import type { Settings } from "../Environment.ts"
import type { ListenerRefused } from "../Startup.ts"
import { probes } from "./ControlListener.ts"
import * as Installation from "./Installation.ts"
import type { OperatedTasks } from "./OperatedTasks.ts"
import * as OwnProcess from "./OwnProcess.ts"
import * as ServingLifecycle from "./ServingLifecycle.ts"

type GatewayRole = Exclude<Role, TasksRole>

/** Serves readiness and metrics, without the operator API. */
type Operational = Layer.Layer<never, ListenerRefused, Readiness | Lifecycle>

/** The program of the roles `gateway`, `control` and `all`. All modules are loaded before anything starts. */
export const layer = Effect.fnUntraced(function* (
  doors: Doors,
  role: GatewayRole,
  settings: Settings,
  operational: Operational = probes(settings)
) {
  const tasks = yield* tasksOf(doors, settings)
  const listening = yield* Effect.promise(() => listeners(doors, role, settings, operational, tasks))
  return Layer.merge(ServingLifecycle.layer(settings), OwnProcess.announce(role)).pipe(
    Layer.provide(listening),
    Layer.provide(Option.match(tasks, { onNone: () => Layer.empty, onSome: ({ program }) => program })),
    Layer.provide(Installation.prepare(settings)),
    Layer.provide([
      ServingLifecycle.lifecycle,
      Conditions.layer,
      LiveFeed.layer,
      Installation.vault(settings),
      gatewaySettings(settings),
      Layer.succeed(StartupUpstreams, doors.upstreams),
      Guardrails.layer,
      Layer.succeed(StudioOfEnvironment, settings.studio),
      Layer.succeed(StartupAuthSettings, settings.authSettings)
    ]),
    Layer.provide([
      doors.database.layer,
      doors.redis.layer,
      doors.upstream.layer,
      EgressHttp.layer(settings.addressPolicy)
    ])
  )
})

const tasksOf = Effect.fnUntraced(function* (doors: Doors, settings: Settings) {
  const { tasks } = doors
  if (tasks._tag === "None") return Option.none<OperatedTasks>()
  const { load } = yield* Effect.promise(() => import("./TaskRoles.ts"))
  const { make } = yield* Effect.promise(() => import("./OperatedTasks.ts"))
  return Option.some(make(doors, yield* load(tasks), settings))
})

const listeners = async (
  doors: Doors,
  role: GatewayRole,
  settings: Settings,
  operational: Operational,
  tasks: Option.Option<OperatedTasks>
) => {
  switch (role) {
    case "control":
      return operatorApi(doors, settings, tasks)
    case "gateway":
      return (await proxy(settings)).pipe(Layer.provide(operational), Layer.provide(Readiness.layer("degraded")))
    case "all":
      return (await proxy(settings)).pipe(
        Layer.provide(await operatorApi(doors, settings, tasks)),
        Layer.provide([GatewayAddress.layer, AppliedEpoch.layer, Readiness.layer("not_ready")])
      )
  }
}

const operatorApi = (doors: Doors, settings: Settings, tasks: Option.Option<OperatedTasks>) =>
  import("./OperatorApi.ts").then(({ layer }) => layer(doors, settings, tasks))
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
