import { Clock, Context, Duration, Effect, Layer, Scheduler, type Scope } from "effect"
import { Broker, type BrokerError } from "../src/services/Broker.ts"
import { BrokerState } from "./broker-memory/BrokerState.ts"
import * as Client from "./broker-memory/Client.ts"
import { Timers } from "./broker-memory/queues/Timers.ts"

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
 * delays. The state is not shared with other processes, and is lost at exit.
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
export const makeServer = Effect.fnUntraced(function* (
  options: ServerOptions = {}
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

/** A server with one connection, for programs that run in a single process. */
export const layer = (options?: ServerOptions & ConnectOptions): Layer.Layer<Broker, BrokerError> =>
  Layer.provide(layerConnection(options), layerServer(options))
