import { Context, type Effect, type Option, type Scope } from "effect"
import type { Report } from "../../src/process/Readiness.ts"

/** How a worker ended. */
export interface WorkerEnd {
  /** The exit code, or the name of the signal that killed the process. */
  readonly status: number | string
  /** The reason that the worker gave for its failure. */
  readonly sentence: Option.Option<string>
}

/** A process that serves the proxy listener together with others. It ends with its scope. */
export interface WorkerProcess {
  readonly pid: number
  /** Waits until all listeners of the worker are open. It waits forever if the worker ends before. */
  readonly ready: Effect.Effect<void>
  readonly ended: Effect.Effect<WorkerEnd>
  /** Waits until the worker responds, which it also does while it starts. It may migrate a large database meanwhile. */
  readonly alive: Effect.Effect<void>
  /** Waits forever if the worker does not respond. */
  readonly readiness: Effect.Effect<Report>
  /** The page of the worker's metrics. Waits forever if the worker does not respond. */
  readonly metrics: Effect.Effect<string>
  /**
   * Asks the worker to leave the listener to the other workers, and waits for its end. Like the end of the scope, this
   * takes no longer than the drain, because the worker is killed then.
   */
  readonly retire: Effect.Effect<void>
  /** Kills a worker that does not respond. */
  readonly kill: Effect.Effect<void>
}

export class WorkerProcesses extends Context.Service<
  WorkerProcesses,
  { readonly start: (number: number) => Effect.Effect<WorkerProcess, never, Scope.Scope> }
>()("svc/layers/WorkerProcesses") {}
