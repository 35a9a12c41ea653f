import { Clock, Context, Duration, Effect, Layer, Scheduler, type Scope } from "effect"
import { Broker, type BrokerError } from "../src/services/Broker.ts"
import { BrokerState } from "./broker-memory/BrokerState.ts"
import * as Client from "./broker-memory/Client.ts"
import { Timers } from "./broker-memory/queues/Timers.ts"

export interface ServerOptions {
  /**
   * The limit of the memory for messages, in bytes. Each message counts its content and 512 bytes. Above the limit the
   * server blocks publishes. Default: 256 MiB.
   */
  readonly memoryLimit?: number | undefined
}

export interface ConnectOptions {
  /** `drop` and `cut` select connections by this name. Default: "memory". */
  readonly name?: string | undefined
  /** The maximum number of unconfirmed publishes for each purpose. Default: 256. */
  readonly window?: number | undefined
  /** The timeout of a publish, including the time in which it waits for others to be confirmed. Default: 10 seconds. */
  readonly publishWithin?: Duration.Input | undefined
  /** The timeout of every other request to the broker. Default: 5 seconds. */
  readonly answerWithin?: Duration.Input | undefined
}

/**
 * A model of RabbitMQ 3.10 inside the process. The server uses the `Clock` under which it was made: with a `TestClock`,
 * the delay of a retry queue takes no real time. Its state is not shared with other processes and ends with this one.
 */
export class BrokerServer extends Context.Service<
  BrokerServer,
  {
    /** Opens a connection that closes with the scope. Fails between `cut` and `restore` of the connection's name. */
    readonly connect: (options?: ConnectOptions) => Effect.Effect<Broker["Service"], BrokerError, Scope.Scope>

    /**
     * Closes all connections, or those with the given name. Unsettled deliveries return to their queues, exclusive
     * queues are deleted, and unconfirmed publishes end as `Unknown`. Clients reconnect at once, and each consumer
     * resumes with a higher epoch number.
     */
    readonly drop: (connection?: string) => Effect.Effect<void>

    /** Closes all connections, or those with the given name, and refuses new ones until `restore`. */
    readonly cut: (connection?: string) => Effect.Effect<void>
    readonly restore: Effect.Effect<void>

    /** Delays everything that the server sends until `thaw`. The server still carries out requests. */
    readonly freeze: Effect.Effect<void>
    readonly thaw: Effect.Effect<void>

    /**
     * Blocks publishes until `unblock`. As with RabbitMQ, a connection learns about the block from its next publish,
     * which stays unconfirmed meanwhile.
     */
    readonly block: (reason: string) => Effect.Effect<void>
    readonly unblock: Effect.Effect<void>

    /**
     * Closes all connections. Deletes queues and exchanges that are not durable, and messages that are not persistent,
     * except in quorum queues and streams. Clients reconnect at once.
     */
    readonly restart: Effect.Effect<void>
  }
>()("svc/BrokerServer") {}

/** Makes a server without queues. It stops when the scope closes. */
export const makeServer = Effect.fnUntraced(function* (
  options: ServerOptions = {}
): Effect.fn.Return<BrokerServer["Service"], never, Scope.Scope> {
  const clock = yield* Clock.Clock
  const context = yield* Effect.context<never>()
  const dispatcher = Context.get(context, Scheduler.Scheduler).makeDispatcher()
  // RabbitMQ counts whole milliseconds. A fraction could make a timer fire one millisecond too early.
  const now = () => Math.floor(clock.currentTimeMillisUnsafe())
  const timers = yield* Effect.acquireRelease(
    Effect.sync(() => new Timers(now, Effect.runForkWith(context))),
    (timers) => Effect.sync(() => timers.stop())
  )
  const broker = new BrokerState({
    now,
    timers,
    defer: (task) => dispatcher.scheduleTask(task, 0),
    memoryLimit: options.memoryLimit ?? 256 * 1_024 * 1_024
  })
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

export const layerConnection = (options?: ConnectOptions): Layer.Layer<Broker, BrokerError, BrokerServer> =>
  Layer.effect(
    Broker,
    Effect.flatMap(BrokerServer, (server) => server.connect(options))
  )

/** A server with one connection, for a program that needs no other process. */
export const layer = (options?: ServerOptions & ConnectOptions): Layer.Layer<Broker, BrokerError> =>
  Layer.provide(layerConnection(options), layerServer(options))
