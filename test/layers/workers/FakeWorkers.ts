import { Deferred, type Duration, Effect, Layer, Option } from "effect"
import { type WorkerEnd, type WorkerProcess, WorkerProcesses } from "../../../layers/workers/WorkerProcesses.ts"
import { Lifecycle } from "../../../src/process/Lifecycle.ts"
import type { Report } from "../../../src/process/Readiness.ts"

/** A worker that a test lets become ready, respond and end. */
export class FakeWorker {
  readonly number: number
  readonly pid: number
  readonly ready = Deferred.makeUnsafe<void>()
  readonly ended = Deferred.makeUnsafe<WorkerEnd>()
  isAlive = true
  report: Report | undefined = { status: "ready", checks: { database: "up" } }
  page: string | undefined = "# TYPE requests_total counter\nrequests_total 1\n"
  asked: "nothing" | "retire" | "drain" | "kill" = "nothing"

  constructor(number: number, pid: number) {
    this.number = number
    this.pid = pid
  }

  readonly serve = Effect.suspend(() => Deferred.succeed(this.ready, undefined))

  end(status: WorkerEnd["status"], sentence?: string): Effect.Effect<boolean> {
    return Deferred.succeed(this.ended, { status, sentence: Option.fromUndefinedOr(sentence) })
  }

  get isRunning(): boolean {
    return !Deferred.isDoneUnsafe(this.ended)
  }
}

export interface Options {
  /** The time from the request to retire until the end. Default: 0 seconds. */
  readonly retire?: Duration.Input
  /** The time from the end of the scope until that of the process. Default: 0 seconds. */
  readonly drain?: Duration.Input
}

/** Processes that end with code 0 when they are asked to. */
export const make = (options: Options = {}) => {
  const workers: Array<FakeWorker> = []
  const asked = (worker: FakeWorker, how: "retire" | "drain") =>
    Effect.suspend(() => {
      if (!worker.isRunning) return Effect.void
      worker.asked = how
      return Effect.andThen(Effect.sleep(options[how] ?? 0), worker.end(0))
    })
  const orNever = <A>(read: () => A | undefined) =>
    Effect.suspend(() => {
      const value = read()
      return value === undefined ? Effect.never : Effect.succeed(value)
    })
  const start = (number: number) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        const worker = new FakeWorker(number, workers.length + 1)
        workers.push(worker)
        return worker
      }),
      (worker) => asked(worker, "drain")
    ).pipe(
      Effect.map(
        (worker): WorkerProcess => ({
          pid: worker.pid,
          ready: Deferred.await(worker.ready),
          ended: Deferred.await(worker.ended),
          alive: Effect.suspend(() => (worker.isAlive ? Effect.void : Effect.never)),
          readiness: orNever(() => worker.report),
          metrics: orNever(() => worker.page),
          retire: asked(worker, "retire"),
          kill: Effect.suspend(() => {
            worker.asked = "kill"
            return worker.end("SIGKILL")
          })
        })
      )
    )
  return {
    workers,
    layer: Layer.merge(Layer.succeed(WorkerProcesses, { start }), Lifecycle.layer("starting"))
  }
}
