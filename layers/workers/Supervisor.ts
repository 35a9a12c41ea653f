import { Context, Data, Deferred, Effect, Layer, Queue, Runtime, Scope, SubscriptionRef } from "effect"
import { Lifecycle } from "../../src/process/Lifecycle.ts"
import type { Report } from "../../src/process/Readiness.ts"
import * as Crew from "./Crew.ts"
import { Slot } from "./Slot.ts"
import { WorkerProcesses } from "./WorkerProcesses.ts"
import * as WorkersOverview from "./WorkersOverview.ts"

/** The program has no worker, and another start would not help. */
export class WorkersFailed extends Data.TaggedError("WorkersFailed")<{
  readonly message: string
  readonly code: number
}> {
  override get [Runtime.errorExitCode]() {
    return this.code
  }
}

export interface Options {
  readonly workers: number
  /** Each item asks for the restart of all workers. */
  readonly restarts: Queue.Dequeue<void>
}

/** Keeps a number of worker processes running. */
export class Supervisor extends Context.Service<
  Supervisor,
  {
    /** Runs the workers. On interruption all of them drain at once. */
    readonly run: Effect.Effect<never, WorkersFailed>
    readonly readiness: Effect.Effect<Report>
    /** The metrics of this process and of all workers, in the format of Prometheus. */
    readonly metrics: Effect.Effect<string>
  }
>()("svc/layers/Supervisor") {
  static readonly layer = (options: Options) => Layer.effect(Supervisor, make(options))
}

const make = Effect.fnUntraced(function* ({ restarts, workers }: Options) {
  const processes = yield* WorkerProcesses
  const lifecycle = yield* Lifecycle
  const slots = Array.from({ length: workers }, (_, index) => new Slot(index + 1))
  const { metrics, readiness } = yield* WorkersOverview.make(slots)

  const run = Effect.gen(function* () {
    const failed = yield* Deferred.make<never, WorkersFailed>()
    const crew: Crew.Crew = {
      slots,
      processes,
      scope: yield* Effect.acquireRelease(Scope.make("parallel"), Scope.close),
      stop: ({ code, sentence }) => Deferred.fail(failed, new WorkersFailed({ code, message: sentence })),
      onServing: SubscriptionRef.set(lifecycle, "serving"),
      haveServed: false
    }
    yield* Effect.addFinalizer(() => drain(lifecycle))
    const restartEach = Effect.forever(Effect.andThen(Queue.take(restarts), Crew.restart(crew)))
    const tasks = [restartEach, ...slots.map((slot) => Crew.keep(crew, slot))]
    return yield* Effect.raceAllFirst([Deferred.await(failed), ...tasks])
  }).pipe(Effect.scoped)

  return Supervisor.of({ run, readiness, metrics })
})

const drain = Effect.fnUntraced(function* (lifecycle: Lifecycle["Service"]) {
  const phase = yield* SubscriptionRef.getAndSet(lifecycle, "draining")
  if (phase !== "serving") return
  yield* Effect.logInfo("The workers are draining: readiness is false, and the listener closes after the drain delay")
})
