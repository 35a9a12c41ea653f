import { Effect, Layer } from "effect"
import { isTasksRole } from "../DoorOptions.ts"
import type { Doors } from "../Doors.ts"
import type { Settings } from "../Environment.ts"

/**
 * The program of a role. It loads only the modules that the role needs. On shutdown, readiness turns false, and after a
 * delay the proxy listener drains. Then the control listener closes. At last the connections to database, Redis and
 * broker close.
 */
export const layer = (doors: Doors, settings: Settings) => Layer.unwrap(Effect.promise(() => load(doors, settings)))

const load = async (doors: Doors, settings: Settings) => {
  const { role } = doors
  return isTasksRole(role)
    ? (await import("./TaskRoles.ts")).layer(doors, role, settings)
    : (await import("./GatewayRoles.ts")).load(doors, role, settings)
}
