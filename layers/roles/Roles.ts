import { Effect, Layer } from "effect"
import { isTasksRole } from "../DoorOptions.ts"
import type { Doors } from "../Doors.ts"
import type { Settings } from "../Environment.ts"

/**
 * The whole program of a role, of which nothing is loaded that the role does not need. What is provided later is opened
 * earlier and closed later: readiness turns false, then (after the delay) the proxy listener drains, then the control
 * listener goes, then the doors close.
 */
export const layer = (doors: Doors, settings: Settings) => Layer.unwrap(Effect.promise(() => load(doors, settings)))

const load = async (doors: Doors, settings: Settings) => {
  const { role } = doors
  return isTasksRole(role)
    ? (await import("./TaskRoles.ts")).layer(doors, role, settings)
    : (await import("./GatewayRoles.ts")).load(doors, role, settings)
}
