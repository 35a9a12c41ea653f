import { Effect, Layer, Queue } from "effect"
import { Supervisor } from "../../layers/workers/Supervisor.ts"
import * as FakeWorkers from "../layers/workers/FakeWorkers.ts"
import * as LiveMetrics from "./LiveMetrics.ts"

/** The metrics that a supervisor has beside those of its workers. */
export const metrics: Effect.Effect<LiveMetrics.LiveMetrics> = Effect.gen(function* () {
  const restarts = yield* Queue.unbounded<void>()
  const supervisor = Supervisor.layer({ workers: 1, restarts }).pipe(Layer.provide(FakeWorkers.make().layer))
  return yield* Effect.flatMap(Supervisor, ({ metrics }) => metrics).pipe(Effect.provide(supervisor))
}).pipe(Effect.map(LiveMetrics.read))
