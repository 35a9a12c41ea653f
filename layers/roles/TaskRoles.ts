import { Effect, Layer } from "effect"
import * as LiveFeed from "../../src/live/LiveFeed.ts"
import type { Broker } from "../../src/services/Broker.ts"
import type { Redis } from "../../src/services/Redis.ts"
import type { Tasks } from "../../src/tasks/Tasks.ts"
import type { TasksRole, TasksSource } from "../DoorOptions.ts"
import type { Doors } from "../Doors.ts"
import type { Settings } from "../Environment.ts"
import type { StartRefused } from "../Startup.ts"
import { probes } from "./ControlListener.ts"
import * as Messaging from "./Messaging.ts"
import * as OwnProcess from "./OwnProcess.ts"
import * as ServingLifecycle from "./ServingLifecycle.ts"
import * as Status from "./Status.ts"
import * as TasksModule from "./TasksModule.ts"

/** The program of the roles messaging, status and graph, which need no database. */
export const layer = (doors: Doors, role: TasksRole, tasks: Tasks, settings: Settings) =>
  Layer.merge(ServingLifecycle.layer(settings), OwnProcess.announce(role)).pipe(
    Layer.provide(program(role, tasks, settings)),
    Layer.provide(probes(settings).pipe(Layer.provide(Messaging.readiness))),
    Layer.provide([ServingLifecycle.lifecycle, LiveFeed.layer]),
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

/** Loads the tasks of the example or of a module. */
export const load = (source: Exclude<TasksSource, { readonly _tag: "None" }>): Effect.Effect<Tasks, StartRefused> =>
  source._tag === "Module"
    ? TasksModule.load(source.path)
    : Effect.promise(() => import("../../src/example/ExampleTasks.ts").then((module) => module.default))
