import { Effect, Layer } from "effect"
import { isTasksRole } from "../DoorOptions.ts"
import type { Doors } from "../Doors.ts"
import type { Settings } from "../Environment.ts"

/**
 * The whole program of a role. Only modules that the role needs are loaded. Layers that are provided later open earlier
 * and close later. So on shutdown readiness turns false, after a delay the proxy listener drains, then the control
 * listener closes, and at last the connections to database, Redis and broker.
 */
export const layer = (doors: Doors, settings: Settings) => Layer.unwrap(Effect.promise(() => load(doors, settings)))

const load = async (doors: Doors, settings: Settings) => {
  const { role } = doors
  return isTasksRole(role)
    ? (await import("./TaskRoles.ts")).layer(doors, role, settings)
    : (await import("./GatewayRoles.ts")).load(doors, role, settings)
}
