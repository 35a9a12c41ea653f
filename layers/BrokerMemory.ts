import { Clock, Context, Duration, Effect, Layer, Scheduler, type Scope } from "effect"
import { Broker, type BrokerError } from "../src/services/Broker.ts"
import { BrokerState } from "./broker-memory/BrokerState.ts"
import * as Client from "./broker-memory/Client.ts"
import { DurableState, isStep, type Step } from "./broker-memory/DurableState.ts"
import { Timers } from "./broker-memory/queues/Timers.ts"
import { DataDirectory } from "./data/DataDirectory.ts"
import type { DataRefused } from "./data/DataRefused.ts"
import * as Journal from "./journal/Journal.ts"

export interface ServerOptions {
  /**
   * The memory limit for messages, in bytes. A message counts as its content plus 512 bytes. Above the limit the server
   * blocks publishes. Default: 256 MiB.
   */
  readonly memoryLimit?: number | undefined
}

export interface ConnectOptions {
  /** `drop` and `cut` select connections by this name. Default: "memory". */
  readonly name?: string | undefined
  /** The maximum number of unconfirmed publishes for each purpose. Default: 256. */
  readonly window?: number | undefined
  /** The timeout of a publish, including its wait for the confirmation of earlier publishes. Default: 10 seconds. */
  readonly publishWithin?: Duration.Input | undefined
  /** The timeout of every other request to the broker. Default: 5 seconds. */
  readonly answerWithin?: Duration.Input | undefined
}

/**
 * A model of RabbitMQ 3.10 inside the process. It uses the `Clock` of the fiber that made it, so a `TestClock` can skip
 * delays. The state is not shared with other processes. It is lost at exit, unless a data directory keeps it.
 */
export class BrokerServer extends Context.Service<
  BrokerServer,
  {
    /** Opens a connection that closes with the scope. After `cut` of its name, it fails until `restore`. */
    readonly connect: (options?: ConnectOptions) => Effect.Effect<Broker["Service"], BrokerError, Scope.Scope>

    /**
     * Closes all connections, or those with the given name. Unsettled deliveries return to their queues. Exclusive
     * queues are deleted. Unconfirmed publishes end as `Unknown`. Clients reconnect at once, and their consumers resume
     * with a higher epoch number.
     */
    readonly drop: (connection?: string) => Effect.Effect<void>

    /** Closes all connections, or those with the given name, and refuses new ones until `restore`. */
    readonly cut: (connection?: string) => Effect.Effect<void>
    readonly restore: Effect.Effect<void>

    /** Holds back everything that the server sends until `thaw`. The server still executes requests. */
    readonly freeze: Effect.Effect<void>
    readonly thaw: Effect.Effect<void>

    /**
     * Blocks publishes until `unblock`. As with RabbitMQ, a connection is notified only when it publishes. That publish
     * stays unconfirmed until `unblock`.
     */
    readonly block: (reason: string) => Effect.Effect<void>
    readonly unblock: Effect.Effect<void>

    /**
     * Closes all connections. Deletes non-durable queues and exchanges. Deletes non-persistent messages, except in
     * quorum queues and streams. Clients reconnect at once.
     */
    readonly restart: Effect.Effect<void>
  }
>()("svc/BrokerServer") {}

/** Makes a server without queues. It stops when the scope closes. */
export const makeServer = (options: ServerOptions = {}): Effect.Effect<BrokerServer["Service"], never, Scope.Scope> =>
  serverWith(options, undefined)

/** The state that earlier processes stored, and the journal that keeps further changes. */
interface Storage {
  readonly state: DurableState
  readonly journal: Journal.Journal<Step>
}

/** The delay before another attempt to write to a disk that is full or failing. */
const writeRetryMs = 1_000

const serverWith = Effect.fnUntraced(function* (
  options: ServerOptions,
  storage: Storage | undefined
): Effect.fn.Return<BrokerServer["Service"], never, Scope.Scope> {
  const clock = yield* Clock.Clock
  const context = yield* Effect.context<never>()
  const dispatcher = Context.get(context, Scheduler.Scheduler).makeDispatcher()
  // Whole milliseconds, as in RabbitMQ. With fractions, a timer could fire one millisecond too early.
  const now = () => Math.floor(clock.currentTimeMillisUnsafe())
  const timers = yield* Effect.acquireRelease(
    Effect.sync(() => new Timers(now, Effect.runForkWith(context))),
    (timers) => Effect.sync(() => timers.stop())
  )
  const fork = Effect.runForkWith(context)
  const keeping = (storage: Storage) => ({
    record: (step: Step) => {
      storage.state.apply(step)
      storage.journal.append(step)
    },
    commit: (retry: () => void) => {
      try {
        storage.journal.flush()
        return true
      } catch (failure) {
        fork(Effect.logError("The broker confirms nothing, because its data cannot be written", failure))
        timers.set(storage, now() + writeRetryMs, retry)
        return false
      }
    }
  })
  const broker = new BrokerState({
    now,
    timers,
    storage: storage && keeping(storage),
    defer: (task) => dispatcher.scheduleTask(task, 0),
    memoryLimit: options.memoryLimit ?? 256 * 1_024 * 1_024
  })
  if (storage !== undefined) broker.takeOver(storage.state)
  return BrokerServer.of({
    connect: ({ answerWithin = "5 seconds", name = "memory", publishWithin = "10 seconds", window = 256 } = {}) =>
      Client.connect(broker, {
        name,
        window,
        timeoutMs: Duration.toMillis(publishWithin),
        answerTimeoutMs: Duration.toMillis(answerWithin)
      }),
    drop: (connection) => Effect.sync(() => broker.drop("The connection was lost", connection)),
    cut: (connection) => Effect.sync(() => broker.cut(connection)),
    restore: Effect.sync(() => broker.restore()),
    freeze: Effect.sync(() => {
      broker.events.frozen = true
    }),
    thaw: Effect.sync(() => {
      broker.events.frozen = false
    }),
    block: (reason) => Effect.sync(() => broker.block(reason)),
    unblock: Effect.sync(() => broker.block(undefined)),
    restart: Effect.sync(() => broker.restart())
  })
})

/** A server for programs that open connections themselves, and for tests that make connections fail. */
export const layerServer = (options?: ServerOptions): Layer.Layer<BrokerServer> =>
  Layer.effect(BrokerServer, makeServer(options))

/** A server whose durable queues, exchanges, bindings and stored messages stay in the data directory. */
export const layerServerOnDisk = (
  options: ServerOptions & Pick<Journal.Options<unknown>, "rewriteBytes"> = {}
): Layer.Layer<BrokerServer, DataRefused, DataDirectory> =>
  Layer.effect(
    BrokerServer,
    Effect.gen(function* () {
      const { folder } = yield* DataDirectory
      const state = new DurableState()
      const journal = yield* Journal.make<Step>({
        folder: folder("broker"),
        isRecord: isStep,
        replay: state.apply,
        capture: () => state.capture(),
        rewriteBytes: options.rewriteBytes
      })
      return yield* serverWith(options, { state, journal })
    })
  )

export const layerConnection = (options?: ConnectOptions): Layer.Layer<Broker, BrokerError, BrokerServer> =>
  Layer.effect(
    Broker,
    Effect.flatMap(BrokerServer, (server) => server.connect(options))
  )

/** A server with one connection, for programs that run in a single process. */
export const layer = (options?: ServerOptions & ConnectOptions): Layer.Layer<Broker, BrokerError> =>
  Layer.provide(layerConnection(options), layerServer(options))

/** The same, with a server whose data stays in the data directory. */
export const layerOnDisk = (
  options?: ServerOptions & ConnectOptions
): Layer.Layer<Broker, BrokerError | DataRefused, DataDirectory> =>
  Layer.provide(layerConnection(options), layerServerOnDisk(options))
