import { closeSync, openSync } from "node:fs"
import { Console, Effect, Option } from "effect"
import * as ClusterWorkers from "../../../layers/workers/ClusterWorkers.ts"
import { WorkerProcesses } from "../../../layers/workers/WorkerProcesses.ts"

/** Runs `use` while this process cannot open another file. */
const withoutFiles = <A, E, R>(use: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const files: Array<number> = []
      try {
        while (true) files.push(openSync("/dev/null", "r"))
      } catch {}
      return files
    }),
    () => use,
    (files) => Effect.sync(() => files.forEach(closeSync))
  )

/** Prints how the start of a worker ends without file descriptors. */
const program = Effect.gen(function* () {
  const { start } = yield* WorkerProcesses
  const { ended } = yield* withoutFiles(start(1))
  const { sentence, status } = yield* ended
  yield* Console.log(JSON.stringify({ status, sentence: Option.getOrNull(sentence) }))
}).pipe(Effect.scoped, Effect.provide(ClusterWorkers.layer({ workers: 1, endTimeout: "1 second" })))

Effect.runFork(program)
