import { Layer } from "effect"
import type { HttpRouter } from "effect/http"
import * as WatchedBroker from "../../src/control/system/WatchedBroker.ts"
import type { Redis } from "../../src/services/Redis.ts"
import * as LiveQueues from "../../src/status/queues/LiveQueues.ts"
import * as EventStream from "../../src/status/stream/EventStream.ts"
import type { Tasks } from "../../src/tasks/Tasks.ts"
import type { Doors } from "../Doors.ts"
import type { Settings } from "../Environment.ts"
import * as Messaging from "./Messaging.ts"
import * as Status from "./Status.ts"
import * as TaskSources from "./TaskSources.ts"

/** The layers that tasks add to a process with an operator API. */
export interface OperatedTasks {
  /** Runs beside the gateway. */
  readonly program: Layer.Layer<never, unknown, Redis>
  /** The control listener serves these routes to operators. */
  readonly routes: Layer.Layer<never, unknown, HttpRouter.HttpRouter | Redis>
  /** Lets operators find tasks by their ids, and see whether the broker can be reached. */
  readonly sources: Layer.Layer<never, unknown, Redis>
  /** Ends the event streams of the listener when it closes. */
  readonly drainFirst: Layer.Layer<never, unknown, Redis>
}

/** With the role `control`, the workers and the status listener run in other processes. */
export const make = (
  { broker, role }: Pick<Doors, "broker" | "role">,
  tasks: Tasks,
  settings: Settings
): OperatedTasks => {
  const services = Layer.provide(Status.services(tasks, settings), broker.layer)
  const withServices = Layer.provide([services, broker.layer])
  return {
    // Layers that are provided later close later. So the last statuses of the workers are still stored.
    program:
      role === "all"
        ? Messaging.layer(tasks, settings).pipe(Layer.provide(Status.all(tasks, settings)), withServices)
        : withServices(LiveQueues.layer(tasks.runtime)),
    routes: withServices(Status.routes()),
    sources: withServices(Layer.merge(TaskSources.layer, WatchedBroker.layer)),
    drainFirst: withServices(EventStream.drainFirst)
  }
}
