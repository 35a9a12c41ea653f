import cluster, { type Worker } from "node:cluster"
import { Deferred, type Duration, Effect, Layer, Option, Schema } from "effect"
import type { Report } from "../../src/process/Readiness.ts"
import * as OwnListeners from "../http/OwnListeners.ts"
import { HandedConnections } from "./HandedConnections.ts"
import { FromWorker, type ToWorker } from "./Messages.ts"
import { Question } from "./Question.ts"
import * as WorkerIdentity from "./WorkerIdentity.ts"
import { WorkerOutput } from "./WorkerOutput.ts"
import { type WorkerEnd, type WorkerProcess, WorkerProcesses } from "./WorkerProcesses.ts"

export interface Options {
  readonly workers: number
  /** The longest time from the request to end until the end. Then the worker is killed. */
  readonly endTimeout: Duration.Input
}

/** Output and messages of a worker can arrive this long after its end. */
const remainderTimeoutMs = 2_000

/**
 * Starts workers with Node's cluster. This process owns the socket of the proxy listener and gives new connections to the
 * workers in turn. So no connection is refused while at least one worker listens. Linux could also distribute the
 * connections among the sockets of several processes (`SO_REUSEPORT`), but closing one of these sockets resets the
 * connections that wait for it.
 */
export const layer = ({ endTimeout, workers }: Options) =>
  Layer.sync(WorkerProcesses, () => {
    cluster.schedulingPolicy = cluster.SCHED_RR
    // The workers run the same command with the same options of Node.
    cluster.setupPrimary({ silent: true })
    const output = new WorkerOutput()
    const connections = new HandedConnections()

    const start = Effect.fnUntraced(function* (number: number) {
      const supervisorPorts = OwnListeners.ports()
      const running = yield* Effect.acquireRelease(
        Effect.sync(() => {
          const worker = cluster.fork(WorkerIdentity.toEnvironment({ number, of: workers, supervisorPorts }))
          connections.watch(worker)
          output.add(worker)
          return new RunningWorker(number, worker, (line) => output.announce(line))
        }),
        (running) => running.endedAfter(() => running.signal("SIGTERM"), endTimeout)
      )
      const process: WorkerProcess = {
        pid: running.pid,
        ready: Deferred.await(running.ready),
        ended: Deferred.await(running.ended),
        alive: running.alive.ask,
        readiness: running.readiness.ask,
        metrics: running.metrics.ask,
        retire: running.endedAfter(() => running.send({ _tag: "Retire" }), endTimeout),
        kill: Effect.sync(() => running.signal("SIGKILL"))
      }
      return process
    })

    return WorkerProcesses.of({ start })
  })

const decode = Schema.decodeUnknownOption(FromWorker)

class RunningWorker {
  readonly ready = Deferred.makeUnsafe<void>()
  readonly ended = Deferred.makeUnsafe<WorkerEnd>()
  readonly alive = new Question<void>(() => this.send({ _tag: "Alive" }))
  readonly readiness = new Question<Report>(() => this.send({ _tag: "Readiness" }))
  readonly metrics = new Question<string>(() => this.send({ _tag: "Metrics" }))
  readonly #number: number
  readonly #worker: Worker
  readonly #announce: (line: string) => void
  #sentence: string | undefined

  constructor(number: number, worker: Worker, announce: (line: string) => void) {
    this.#number = number
    this.#worker = worker
    this.#announce = announce
    worker.on("message", (message) => Option.map(decode(message), (known) => this.#onMessage(known)))
    const onEnd = (code: number | null, signal: string | null) => this.#onEnd(code ?? signal ?? 1)
    worker.process.once("close", onEnd)
    worker.process.once("exit", (code, signal) => setTimeout(onEnd, remainderTimeoutMs, code, signal).unref())
    // Sending to a process that has just ended fails. The process of a failed start never exits.
    worker.on("error", ({ message }: Error) => {
      if (worker.process.pid === undefined) {
        this.#sentence = message
        this.#onEnd(1)
      }
    })
  }

  get pid(): number {
    return this.#worker.process.pid ?? 0
  }

  send(message: ToWorker): void {
    if (this.#worker.isConnected()) this.#worker.send(message)
  }

  signal(signal: NodeJS.Signals): void {
    this.#worker.process.kill(signal)
  }

  /** Asks the worker to end and waits for its end. Kills it after `timeout`. */
  endedAfter(ask: () => void, timeout: Duration.Input): Effect.Effect<void> {
    const ended = Deferred.await(this.ended)
    return Effect.gen({ self: this }, function* () {
      if (Deferred.isDoneUnsafe(this.ended)) return
      ask()
      if (Option.isSome(yield* Effect.timeoutOption(ended, timeout))) return
      yield* Effect.logError(`Worker ${this.#number} did not end in time and is killed`, { pid: this.pid })
      this.signal("SIGKILL")
      yield* ended
    })
  }

  #onMessage(message: FromWorker): void {
    switch (message._tag) {
      case "Ready":
        Deferred.doneUnsafe(this.ready, Effect.void)
        break
      case "Announced":
        this.#announce(message.line)
        break
      case "Failed":
        this.#sentence = message.sentence
        break
      case "Alive":
        this.alive.respond()
        break
      case "Readiness":
        this.readiness.respond({ status: message.status, checks: message.checks })
        break
      case "Metrics":
        this.metrics.respond(message.page)
    }
  }

  #onEnd(status: WorkerEnd["status"]): void {
    const end: WorkerEnd = { status, sentence: Option.fromUndefinedOr(this.#sentence) }
    Deferred.doneUnsafe(this.ended, Effect.succeed(end))
  }
}
