import { hostname } from "node:os"
import { Layer, Option } from "effect"
import { OwnProcess } from "../../src/control/system/SystemFacts.ts"
import type { Doors } from "../Doors.ts"

/** These variants keep their data inside the process. The upstream's has none. */
const inside = ["embedded", "memory"]

/** Tells operators which doors this process has opened. */
export const layer = (doors: Doors) =>
  Layer.succeed(OwnProcess, {
    role: doors.role,
    host: hostname(),
    pid: process.pid,
    doors: doors.used.map((door) => ({
      door,
      variant: doors[door].variant,
      lost_at_exit: Option.isNone(doors.dataDirectory) && inside.includes(doors[door].variant)
    }))
  })
