import { hostname } from "node:os"
import { Effect } from "effect"
import * as RunningProcesses from "../../src/process/RunningProcesses.ts"
import type { Role } from "../DoorOptions.ts"
import { version } from "../telemetry/Version.ts"

/** The signal that `NodeRuntime.runMain` waits for. */
const drain = Effect.andThen(
  Effect.logInfo("An operator asked this process to drain"),
  Effect.sync(() => process.kill(process.pid, "SIGTERM"))
)

/** Tells the other processes of the installation of this one. It drains if an operator asks for it. */
export const announce = (role: Role) =>
  RunningProcesses.announce({ role, version, host: hostname(), pid: process.pid }, drain)
