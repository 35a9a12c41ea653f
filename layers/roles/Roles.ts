import { Effect, Layer } from "effect"
import { isTasksRole } from "../DoorOptions.ts"
import type { Doors } from "../Doors.ts"
import type { Settings } from "../Environment.ts"

/**
 * The program of a role. It loads only the modules that the role needs. On shutdown, readiness turns false, and after a
 * delay the proxy listener drains. Then the control listener closes. At last the connections to database, Redis and
 * broker close. Fails if the module of the tasks cannot be loaded.
 */
export const load = Effect.fnUntraced(function* (doors: Doors, settings: Settings) {
  const { role, tasks } = doors
  if (isTasksRole(role)) {
    // `problemsOf` has refused a tasks role without tasks.
    if (tasks._tag === "None") return Layer.empty
    const { layer, load } = yield* Effect.promise(() => import("./TaskRoles.ts"))
    return layer(doors, role, yield* load(tasks), settings)
  }
  const { layer } = yield* Effect.promise(() => import("./GatewayRoles.ts"))
  return yield* layer(doors, role, settings)
})
