import { type Deferred, type Scope, Semaphore } from "effect"
import { crashLoop } from "./Decisions.ts"
import type { WorkerProcess } from "./WorkerProcesses.ts"
import type { WorkerReport } from "./WorkersReadiness.ts"

/** A worker whose listeners are open. */
export interface Serving {
  readonly process: WorkerProcess
  readonly scope: Scope.Closeable
  readonly since: number
  /** Another process has taken the number. */
  readonly replaced: Deferred.Deferred<void>
}

export const restartReasons = ["crash", "silence", "restart"] as const
export type RestartReason = (typeof restartReasons)[number]

/** The place of one worker. The processes that fill it one after another have its number. */
export class Slot {
  readonly number: number
  /** Only one process at a time starts for a number. */
  readonly starting = Semaphore.makeUnsafe(1)
  readonly restarts: Record<RestartReason, number> = { crash: 0, silence: 0, restart: 0 }
  current: Serving | undefined
  /** The process before `current`, which still has open requests. */
  retiring: WorkerProcess | undefined
  /** Crashes since the last worker that ran for long. */
  crashes = 0
  /** Whether `current` responded when its metrics were last read. */
  responds = false

  constructor(number: number) {
    this.number = number
  }

  get state(): WorkerReport["state"] {
    if (this.current !== undefined) return "serving"
    if (this.crashes === 0) return "starting"
    return this.crashes < crashLoop ? "restarting" : "crash_loop"
  }
}
