import cluster, { type Worker } from "node:cluster"
import { once } from "node:events"
import { type Console, Effect, Layer, Option, Schema, SubscriptionRef } from "effect"
import { Lifecycle } from "../../src/process/Lifecycle.ts"
import { MetricsPage } from "../../src/process/MetricsPage.ts"
import { Readiness } from "../../src/process/Readiness.ts"
import { type FromWorker, ToWorker } from "./Messages.ts"

const decode = Schema.decodeUnknownOption(ToWorker)

/** Sends a message to the supervisor. If that one has gone, the message is lost. */
export const send = (message: FromWorker): Effect.Effect<void> => Effect.sync(() => sendUnsafe(message))

const sendUnsafe = (message: FromWorker): void => {
  if (cluster.worker?.isConnected() === true) cluster.worker.send(message)
}

/** What the program prints for the operator goes to the supervisor, because all workers would print the same. */
export const announcing: Console.Console = {
  ...globalThis.console,
  log: (...texts) => sendUnsafe({ _tag: "Announced", line: texts.join(" ") })
}

/** The signal that `NodeRuntime.runMain` waits for. */
const end = Effect.sync(() => process.kill(process.pid, "SIGTERM"))

/** Connects `program` with the supervisor. The worker drains when the supervisor has gone. */
export const connected = <A, E, R>(program: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const { worker } = cluster
    if (worker === undefined) return program
    worker.on("disconnect", () => {
      if (worker.exitedAfterDisconnect) return
      // Otherwise Node would end the process at once.
      worker.exitedAfterDisconnect = true
      Effect.runSync(end)
    })
    worker.on("error", () => {})
    worker.on("message", (message) => {
      const known = decode(message)
      if (Option.isSome(known) && known.value._tag === "Alive") sendUnsafe({ _tag: "Alive" })
    })
    // The question may have arrived before, while the program was loaded.
    sendUnsafe({ _tag: "Alive" })
    // A terminal sends this signal to the whole program. Only the supervisor acts on it.
    process.on("SIGHUP", () => {})
    return Effect.ensuring(program, leave(worker))
  })

/** The longest time until a worker that ends has left the listener to the others. */
export const leaveSeconds = 5

/**
 * Waits until the supervisor knows that this worker accepts no more connections. Until then the supervisor may have sent
 * it a connection, which it must refuse so that another worker gets that connection.
 */
const leave = (worker: Worker): Effect.Effect<void> =>
  Effect.promise(async () => {
    if (!worker.isConnected()) return
    const gone = once(process, "disconnect")
    worker.disconnect()
    await gone
  }).pipe(Effect.timeoutOption(`${leaveSeconds} seconds`), Effect.asVoid)

/** Answers the supervisor, which has the only endpoint for readiness and metrics. */
export const responder = Layer.effectDiscard(
  Effect.gen(function* () {
    const lifecycle = yield* Lifecycle
    const readiness = yield* Readiness
    const metrics = yield* MetricsPage
    const fork = Effect.runForkWith(yield* Effect.context<never>())
    const respond = {
      // `connected` answers, because a worker that still starts has no responder.
      Alive: Effect.void,
      Readiness: Effect.flatMap(readiness, (report) => send({ _tag: "Readiness", ...report })),
      Metrics: Effect.flatMap(metrics, (page) => send({ _tag: "Metrics", page })),
      Retire: Effect.andThen(SubscriptionRef.set(lifecycle, "retiring"), end)
    } satisfies Record<ToWorker["_tag"], Effect.Effect<unknown>>
    const onMessage = (message: unknown) => {
      const known = decode(message)
      if (Option.isSome(known)) fork(respond[known.value._tag])
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => cluster.worker?.on("message", onMessage)),
      () => Effect.sync(() => cluster.worker?.off("message", onMessage))
    )
  })
)
