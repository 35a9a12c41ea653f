import { Effect, Layer } from "effect"
import type { HttpRouter } from "effect/http"
import type { Broker } from "../../src/services/Broker.ts"
import type { Redis } from "../../src/services/Redis.ts"
import * as EventStream from "../../src/status/stream/EventStream.ts"
import type { Tasks } from "../../src/tasks/Tasks.ts"
import type { TasksRole, TasksSource } from "../DoorOptions.ts"
import type { Doors } from "../Doors.ts"
import type { Settings } from "../Environment.ts"
import type { StartRefused } from "../Startup.ts"
import { probes } from "./ControlListener.ts"
import * as Messaging from "./Messaging.ts"
import * as ServingLifecycle from "./ServingLifecycle.ts"
import * as Status from "./Status.ts"
import * as TasksModule from "./TasksModule.ts"

/** The program of the roles messaging, status and graph, which need no database. */
export const layer = (doors: Doors, role: TasksRole, tasks: Tasks, settings: Settings) =>
  ServingLifecycle.layer(settings).pipe(
    Layer.provide(program(role, tasks, settings)),
    Layer.provide(probes(settings).pipe(Layer.provide(Messaging.readiness))),
    Layer.provide(ServingLifecycle.lifecycle),
    Layer.provide([doors.broker.layer, doors.redis.layer])
  )

const program = (role: TasksRole, tasks: Tasks, settings: Settings): Layer.Layer<never, unknown, Broker | Redis> => {
  switch (role) {
    case "messaging":
      return Messaging.layer(tasks, settings)
    case "status":
      return Status.status(tasks, settings)
    case "graph":
      return Status.graph(tasks, settings)
  }
}

/** What the tasks of a process with an operator API have. */
export interface OperatedTasks {
  /** Runs beside the gateway. */
  readonly program: Layer.Layer<never, unknown, Redis>
  /** The control listener serves these routes to operators. */
  readonly routes: Layer.Layer<never, unknown, HttpRouter.HttpRouter | Redis>
  /** Ends the event streams of the listener when it closes. */
  readonly drainFirst: Layer.Layer<never, unknown, Redis>
}

/** With the role `control`, the workers and the status listener run in other processes. */
export const operated = (
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
        ? Messaging.layer(tasks, settings).pipe(
            Layer.provide(Status.all(tasks, settings)),
            withServices
          )
        : Layer.empty,
    routes: withServices(Status.routes()),
    drainFirst: withServices(EventStream.drainFirst)
  }
}

/** Loads the tasks of the example or of a module. */
export const load = (source: Exclude<TasksSource, { readonly _tag: "None" }>): Effect.Effect<Tasks, StartRefused> =>
  source._tag === "Module"
    ? TasksModule.load(source.path)
    : Effect.promise(() => import("../../src/example/ExampleTasks.ts").then((module) => module.default))
