import { Effect, Layer, Option } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import * as ControlApp from "../../src/control/ControlApp.ts"
import { ControlHosts } from "../../src/control/http/KnownHosts.ts"
import { LiveStreams } from "../../src/control/live/LiveStreams.ts"
import { InstallationOfEnvironment } from "../../src/control/portal/InstallationFacts.ts"
import { ControlOrigin } from "../../src/control/session/ControlOrigin.ts"
import { ListenerSessions, ofHolders } from "../../src/control/session/ListenerSessions.ts"
import { StartupOidcClient } from "../../src/control/sign-in/OidcClient.ts"
import { StartLink } from "../../src/control/sign-in/StartLink.ts"
import { UpstreamUiOrigin } from "../../src/control/upstream-ui/UpstreamUiOrigin.ts"
import { shutdownSeconds } from "../../src/process/ShutdownTimeouts.ts"
import type { Doors } from "../Doors.ts"
import type { Settings } from "../Environment.ts"
import * as Listeners from "../Listeners.ts"
import * as Observability from "../Observability.ts"
import * as PortalFolder from "../portal/PortalFolder.ts"
import * as Startup from "../Startup.ts"
import { version } from "../telemetry/Version.ts"
import { controlListener, hostsOf, serveOptions } from "./ControlListener.ts"
import { connectionLimits } from "./EventStreams.ts"
import type { OperatedTasks } from "./OperatedTasks.ts"
import * as OwnDoors from "./OwnDoors.ts"
import * as OwnGateway from "./OwnGateway.ts"
import * as StartLinkLine from "./StartLinkLine.ts"

/** `tasks` are those that operators see and change at the control listener. */
export const layer = (doors: Doors, settings: Settings, tasks: Option.Option<OperatedTasks>) =>
  LiveStreams.drainFirst.pipe(
    Layer.provide(Option.match(tasks, { onNone: () => withoutTasks(settings), onSome: withTasks(settings) })),
    Layer.provide([
      upstreamUi(settings),
      Layer.succeed(ControlOrigin, settings.controlOrigin),
      Layer.succeed(StartupOidcClient, settings.oidcClient),
      OwnDoors.layer(doors),
      portalFiles,
      installation(settings, Option.isSome(tasks))
    ]),
    Layer.provide([LiveStreams.layer(), StartLinkLine.isInTerminal() ? StartLink.layer : Layer.empty]),
    Layer.merge(portal(settings))
  )

/** One layer for both listeners, so that the files are read once. */
const portalFiles = PortalFolder.layer()

const installation = ({ environment, gatewayOrigin }: Settings, hasTasks: boolean) =>
  Layer.merge(
    Layer.succeed(InstallationOfEnvironment, { environment, version, gatewayOrigin, hasTasks }),
    OwnGateway.layer(gatewayOrigin)
  )

const withoutTasks = (settings: Settings) => listener(HttpRouter.serve(ControlApp.layer, serveOptions), settings)

const withTasks =
  (settings: Settings) =>
  ({ drainFirst, routes, sources }: OperatedTasks) =>
    drainFirst.pipe(
      Layer.provide(
        listener(HttpRouter.serve(ControlApp.layerWithTasks(routes), serveOptions), settings, settings.eventStreams)
      ),
      Layer.provide(sources)
    )

const listener = <E, R>(
  served: Layer.Layer<never, E, R>,
  settings: Settings,
  eventStreams?: Settings["eventStreams"]
) =>
  Layer.unwrap(
    Effect.map(Effect.serviceOption(StartLink), (link) =>
      controlListener(
        served,
        (address) =>
          Effect.andThen(
            Startup.announceListener("control", `${address}/admin-ui/`),
            StartLinkLine.print(link, address, settings)
          ),
        settings,
        eventStreams && connectionLimits(eventStreams)
      )
    )
  )

/** Opens the listener for holders of keys if an address is configured. */
const portal = (settings: Settings) =>
  Option.match(settings.portal, {
    onNone: () => Layer.empty,
    onSome: (address) =>
      Layer.effectDiscard(
        HttpServer.addressFormattedWith((bound) => Startup.announceListener("portal", `${bound}/admin-ui/my`))
      ).pipe(
        Layer.provide(HttpRouter.serve(ControlApp.portal, serveOptions)),
        Layer.provide([
          Layer.succeed(ListenerSessions, ofHolders),
          Layer.succeed(ControlOrigin, settings.portalOrigin),
          Layer.succeed(ControlHosts, hostsOf(settings, address, settings.portalOrigin)),
          portalFiles,
          installation(settings, false)
        ]),
        Layer.provide(Observability.minimumLevel(settings.logLevels.gateway_api)),
        Layer.provide(
          Listeners.serverLayer(address, `${shutdownSeconds.controlListener} seconds`, { requestTimeout: "30 seconds" })
        )
      )
  })

/** Opens the listener for the upstream's web interface if an address is configured. */
const upstreamUi = (settings: Settings) =>
  Option.match(settings.upstreamUi, {
    onNone: () => Layer.empty,
    onSome: ({ address, publicOrigin }) =>
      Layer.unwrap(
        HttpServer.addressFormattedWith((bound) => {
          const origin = Option.getOrElse(publicOrigin, () => bound)
          return Effect.succeed(
            Layer.effect(UpstreamUiOrigin, Effect.as(Startup.announceListener("ui", origin), Option.some(origin))).pipe(
              Layer.provide(HttpRouter.serve(ControlApp.upstreamUi(origin), serveOptions))
            )
          )
        })
      ).pipe(
        Layer.provide(Observability.minimumLevel(settings.logLevels.gateway_api)),
        Layer.provide(
          Listeners.serverLayer(address, `${shutdownSeconds.upstreamUiListener} seconds`, {
            requestTimeout: "60 seconds"
          })
        )
      )
  })
