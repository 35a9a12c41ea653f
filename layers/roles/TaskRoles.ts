import { Layer } from "effect"
import type { Broker } from "../../src/services/Broker.ts"
import type { Redis } from "../../src/services/Redis.ts"
import type { TasksRole } from "../DoorOptions.ts"
import type { Doors } from "../Doors.ts"
import type { Settings } from "../Environment.ts"
import { probes } from "./ControlListener.ts"
import * as Messaging from "./Messaging.ts"
import * as ServingLifecycle from "./ServingLifecycle.ts"
import * as Status from "./Status.ts"

/** The program of the roles messaging, status and graph, which need no database. */
export const layer = (doors: Doors, role: TasksRole, settings: Settings) =>
  ServingLifecycle.layer(settings).pipe(
    Layer.provide(tasks(role, settings)),
    Layer.provide(probes(settings).pipe(Layer.provide(Messaging.readiness))),
    Layer.provide(ServingLifecycle.lifecycle),
    Layer.provide([doors.broker.layer, doors.redis.layer])
  )

const tasks = (
  role: TasksRole,
  settings: Settings
): Layer.Layer<never, Layer.Error<ReturnType<typeof Messaging.layer | typeof Status.all>>, Broker | Redis> => {
  switch (role) {
    case "messaging":
      return Messaging.layer(settings)
    case "status":
      return Status.status(settings)
    case "graph":
      return Status.graph(settings)
  }
}

/** Layers that are provided later close later. So the last statuses of the workers are still stored. */
export const all = (settings: Settings) => Messaging.layer(settings).pipe(Layer.provide(Status.all(settings)))
