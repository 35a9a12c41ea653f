import { hostname } from "node:os"
import * as RunningProcesses from "../../src/process/RunningProcesses.ts"
import type { Role } from "../DoorOptions.ts"
import { version } from "../telemetry/Version.ts"

/** Tells the other processes of the installation of this one. */
export const announce = (role: Role) => RunningProcesses.announce({ role, version, host: hostname(), pid: process.pid })
