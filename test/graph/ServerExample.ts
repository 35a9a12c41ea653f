import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Layer } from "effect"
import { HttpRouter } from "effect/http"
import { GraphRoutes, StatusRuntime } from "svc-runtime/graph"
import { RoutedTasksSharedStatusTopology } from "svc-runtime/messaging"
import { DeadLetterRoutes, EventStream, StatusRoutes, TerminalStatusSet } from "svc-runtime/status"

const topology = new RoutedTasksSharedStatusTopology({
  tasks_exchange: "mail.tasks",
  tasks_queue: "mail.send",
  task_types: ["send"],
  status_exchange: "mail.status",
  status_queue: "mail.status"
})

/** The options of the status server. The prefixes must be those of the worker's stores. */
export const lifespan = {
  topology,
  storePrefix: "mail",
  dlqStorePrefix: "mail",
  sseTerminalStatuses: new TerminalStatusSet(["sent", "failed"])
}

/** Merge your own routes, and put your own authentication in front. */
const routes = Layer.mergeAll(
  StatusRoutes.layer({ eventsPath: "/mails/{task_id}/events" }),
  DeadLetterRoutes.layer(),
  GraphRoutes.layer({ executionsPath: "/mails" })
)

/** Serves the routes. Needs a `Broker` and a `Redis`. At shutdown the event streams end before the server closes. */
export const server = (port: number) =>
  EventStream.drainFirst.pipe(
    Layer.provideMerge(HttpRouter.serve(routes, { routerConfig: StatusRoutes.routerConfig })),
    Layer.provideMerge(NodeHttpServer.layer(createServer, { host: "127.0.0.1", port })),
    Layer.provideMerge(StatusRuntime.layer(lifespan))
  )
