import { Layer, Option } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { reading, scanning, summarising } from "../../src/example/Topologies.ts"
import * as GraphRoutes from "../../src/graph/GraphRoutes.ts"
import * as Lifespan from "../../src/graph/Lifespan.ts"
import * as Share from "../../src/services/Share.ts"
import * as QueueMetrics from "../../src/status/dead-letters/QueueMetrics.ts"
import * as Access from "../../src/status/http/Access.ts"
import * as DeadLetterRoutes from "../../src/status/http/DeadLetterRoutes.ts"
import * as Refusals from "../../src/status/http/Refusals.ts"
import * as StatusRoutes from "../../src/status/http/StatusRoutes.ts"
import * as EventStream from "../../src/status/stream/EventStream.ts"
import type { Settings } from "../Environment.ts"
import * as Listeners from "../Listeners.ts"
import * as Start from "../Start.ts"

/**
 * All of the example's tasks share one status stream. A book is read by some workers, scanned by others, and summarised by
 * the stages of a workflow.
 */
const lifespan = { topology: reading, otherTopologies: [scanning, summarising] }

const lifespanOf = ({ eventStreams: { most, perAddress } }: Settings) => ({
  ...lifespan,
  sseMaxOpenStreams: most,
  ...(Option.isSome(perAddress) && { sseMaxOpenStreamsPerAddress: perAddress.value })
})

/** Those that somebody works on, each with the one of its dead letters. */
const queues = [reading, scanning, summarising]
  .flatMap(({ queues, status }) => queues.filter(({ name }) => name !== status.queue))
  .map(({ name }) => name)
  .concat("svc.example.books.0", "svc.example.books.1")
  .flatMap((name) => [name, `${name}.dlq`])

const statusRoutes = Layer.merge(StatusRoutes.layer(), DeadLetterRoutes.layer({ brokerDlqQueueNames: [] }))

/** The hub, statuses, event streams, histories and dead letters of the example's tasks. */
export const status = (settings: Settings) =>
  EventStream.drainFirst.pipe(
    Layer.provide(listener(statusRoutes, settings)),
    Layer.merge(QueueMetrics.layer({ queues })),
    Layer.provide(Lifespan.statuses(lifespanOf(settings))),
    Layer.provide(Lifespan.stores(lifespan))
  )

/** The execution graphs of the example's tasks. */
export const graph = (settings: Settings) =>
  listener(GraphRoutes.layer(), settings).pipe(
    Layer.provide(Lifespan.graphs(lifespan)),
    Layer.provide(Lifespan.stores(lifespan))
  )

/** Both, behind one address. */
export const all = (settings: Settings) =>
  EventStream.drainFirst.pipe(
    Layer.provide(listener(Layer.merge(statusRoutes, GraphRoutes.layer()), settings)),
    Layer.merge(QueueMetrics.layer({ queues })),
    Layer.provide(Lifespan.layer(lifespanOf(settings)))
  )

/** Event streams, and whatever else is asked beside them. */
const connectionsOf = ({ most, perAddress }: Settings["eventStreams"]) => ({
  inAll: most + Listeners.few.inAll,
  perAddress: Option.getOrElse(perAddress, () => Share.of(most)) + Listeners.few.perAddress
})

const listener = <E, R>(
  routes: Layer.Layer<never, E, R>,
  { drainSeconds, eventStreams, statusAddress, statusToken }: Settings
) =>
  announced.pipe(
    Layer.provide(
      HttpRouter.serve(Layer.mergeAll(routes, Refusals.layer, Access.layer(statusToken)), {
        routerConfig: StatusRoutes.routerConfig,
        disableLogger: true,
        disableListenLog: true
      })
    ),
    // what is asked here is small, and whoever has no token may send a body too
    Layer.provide(
      Listeners.server(statusAddress, `${drainSeconds} seconds`, {
        form: detailed,
        requestWithin: "30 seconds",
        most: connectionsOf(eventStreams)
      })
    )
  )

const detailed: Listeners.Form = ({ message }) => JSON.stringify({ detail: message })

const announced = Layer.effectDiscard(HttpServer.addressFormattedWith((address) => Start.announce("status", address)))
