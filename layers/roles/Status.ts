import { Layer, Option } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import * as GraphRoutes from "../../src/graph/GraphRoutes.ts"
import * as StatusRuntime from "../../src/graph/StatusRuntime.ts"
import * as QueueMetrics from "../../src/status/dead-letters/QueueMetrics.ts"
import * as BearerToken from "../../src/status/http/BearerToken.ts"
import * as CancellationRoutes from "../../src/status/http/CancellationRoutes.ts"
import * as DeadLetterRoutes from "../../src/status/http/DeadLetterRoutes.ts"
import * as ErrorResponses from "../../src/status/http/ErrorResponses.ts"
import * as QueueRoutes from "../../src/status/http/QueueRoutes.ts"
import * as StatusRoutes from "../../src/status/http/StatusRoutes.ts"
import * as TaskRoutes from "../../src/status/http/TaskRoutes.ts"
import * as LiveQueues from "../../src/status/queues/LiveQueues.ts"
import * as EventStream from "../../src/status/stream/EventStream.ts"
import type { Tasks } from "../../src/tasks/Tasks.ts"
import type { Settings } from "../Environment.ts"
import * as Listeners from "../Listeners.ts"
import * as Startup from "../Startup.ts"
import { connectionLimits } from "./EventStreams.ts"

const runtimeOptions = ({ runtime }: Tasks, { eventStreams: { most, perAddress } }: Settings) => ({
  ...runtime,
  sseMaxOpenStreams: most,
  ...(Option.isSome(perAddress) && { sseMaxOpenStreamsPerAddress: perAddress.value })
})

const statusRoutes = () =>
  Layer.mergeAll(
    StatusRoutes.layer(),
    DeadLetterRoutes.layer({ brokerDlqQueueNames: [] }),
    QueueRoutes.layer(),
    TaskRoutes.layer(),
    CancellationRoutes.layer()
  )

/**
 * The routes of statuses, dead letters, queues and graphs. Each listener needs layers of its own, because a layer is
 * built once, and adds its routes then.
 */
export const routes = () => Layer.merge(statusRoutes(), GraphRoutes.layer())

/** The services behind `routes`. The listeners of a process share one layer of them. */
export const services = (tasks: Tasks, settings: Settings) => StatusRuntime.layer(runtimeOptions(tasks, settings))

export const status = (tasks: Tasks, settings: Settings) =>
  EventStream.drainFirst.pipe(
    Layer.provide(listener(statusRoutes(), settings)),
    Layer.merge(QueueMetrics.layer({ queues: tasks.queues })),
    Layer.merge(LiveQueues.layer(tasks.runtime)),
    Layer.provide(StatusRuntime.statuses(runtimeOptions(tasks, settings))),
    Layer.provide(StatusRuntime.stores(tasks.runtime))
  )

export const graph = ({ runtime }: Tasks, settings: Settings) =>
  listener(GraphRoutes.layer(), settings).pipe(
    Layer.provide(StatusRuntime.graphs(runtime)),
    Layer.provide(StatusRuntime.stores(runtime))
  )

/** The caller provides `services`. */
export const all = (tasks: Tasks, settings: Settings) =>
  EventStream.drainFirst.pipe(
    Layer.provide(listener(routes(), settings)),
    Layer.merge(QueueMetrics.layer({ queues: tasks.queues })),
    Layer.merge(LiveQueues.layer(tasks.runtime))
  )

const listener = <E, R>(
  routes: Layer.Layer<never, E, R>,
  { drainSeconds, eventStreams, statusAddress, statusToken }: Settings
) =>
  announceStatus.pipe(
    Layer.provide(
      HttpRouter.serve(Layer.mergeAll(routes, ErrorResponses.layer, BearerToken.layer(statusToken)), {
        routerConfig: StatusRoutes.routerConfig,
        disableLogger: true,
        disableListenLog: true
      })
    ),
    // The timeout is short, because bodies are small and even callers without a token may send requests.
    Layer.provide(
      Listeners.serverLayer(statusAddress, `${drainSeconds} seconds`, {
        format: detailBody,
        requestTimeout: "30 seconds",
        connectionLimits: connectionLimits(eventStreams)
      })
    )
  )

const detailBody: Listeners.RefusalFormat = ({ message }) => JSON.stringify({ detail: message })

const announceStatus = Layer.effectDiscard(
  HttpServer.addressFormattedWith((address) => Startup.announceListener("status", address))
)
