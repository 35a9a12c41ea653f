import { Clock, Context, Duration, Effect, Layer, Scheduler, type Scope } from "effect"
import { Broker, type BrokerError } from "../src/services/Broker.ts"
import { BrokerState } from "./broker-memory/BrokerState.ts"
import * as Client from "./broker-memory/Client.ts"
import { Timers } from "./broker-memory/queues/Timers.ts"

export interface ServerOptions {
  /**
   * Bytes of messages that the server holds. Each message counts 512 bytes more than its content. Above the limit the
   * server blocks publishes. Default: 256 MiB.
   */
  readonly memoryLimit?: number | undefined
}

export interface ConnectOptions {
  /** The name by which `drop` and `cut` select the connection. Default: "memory". */
  readonly name?: string | undefined
  /** The maximum number of unconfirmed publishes of one purpose. Default: 256. */
  readonly window?: number | undefined
  /** The deadline of a publish, including its wait for a place in the window. Default: 10 seconds. */
  readonly publishWithin?: Duration.Input | undefined
  /** The deadline of every other request to the broker. Default: 5 seconds. */
  readonly answerWithin?: Duration.Input | undefined
}

/**
 * A model of RabbitMQ 3.10 inside the process. The server behaves as the real one does and runs on the `Clock` under
 * which it was made: with a `TestClock`, the delay of a retry queue takes no real time. No state is shared with other
 * processes, and no state outlives this one.
 */
export class BrokerServer extends Context.Service<
  BrokerServer,
  {
    /** Opens a connection that closes with the scope. Fails while `cut` refuses the connection's name. */
    readonly connect: (options?: ConnectOptions) => Effect.Effect<Broker["Service"], BrokerError, Scope.Scope>

    /**
     * Closes every connection, or those of one name. Unsettled deliveries return to their queues, exclusive queues are
     * deleted, and unconfirmed publishes end as `Unknown`. Clients reconnect at once; consumers resume under a new
     * epoch.
     */
    readonly drop: (connection?: string) => Effect.Effect<void>

    /** Closes every connection, or those of one name, and refuses new ones until `restore`. */
    readonly cut: (connection?: string) => Effect.Effect<void>
    readonly restore: Effect.Effect<void>

    /**
     * Holds back everything that the server sends until `thaw`. The server still carries out requests; their responses
     * wait.
     */
    readonly freeze: Effect.Effect<void>
    readonly thaw: Effect.Effect<void>

    /**
     * Blocks publishes until `unblock`. As with RabbitMQ, a connection learns that it is blocked from its next publish,
     * which stays unconfirmed meanwhile.
     */
    readonly block: (reason: string) => Effect.Effect<void>
    readonly unblock: Effect.Effect<void>

    /**
     * Closes every connection. Deletes queues and exchanges that are not durable, and messages that are not persistent,
     * except in quorum queues and streams. Clients reconnect at once.
     */
    readonly restart: Effect.Effect<void>
  }
>()("svc/BrokerServer") {}

/** Makes an empty server. The server stops when the scope closes. */
export const makeServer = Effect.fnUntraced(function* (
  options: ServerOptions = {}
): Effect.fn.Return<BrokerServer["Service"], never, Scope.Scope> {
  const clock = yield* Clock.Clock
  const context = yield* Effect.context<never>()
  const dispatcher = Context.get(context, Scheduler.Scheduler).makeDispatcher()
  // RabbitMQ counts whole milliseconds. With fractions, a timer could fire one millisecond too early.
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

/** A server without connections, for programs that connect by themselves and for tests that inject failures. */
export const layerServer = (options?: ServerOptions): Layer.Layer<BrokerServer> =>
  Layer.effect(BrokerServer, makeServer(options))

/** One connection to the provided server. */
export const layerConnection = (options?: ConnectOptions): Layer.Layer<Broker, BrokerError, BrokerServer> =>
  Layer.effect(
    Broker,
    Effect.flatMap(BrokerServer, (server) => server.connect(options))
  )

/** A server with one connection: the broker of a program that runs in one process. */
export const layer = (options?: ServerOptions & ConnectOptions): Layer.Layer<Broker, BrokerError> =>
  Layer.provide(layerConnection(options), layerServer(options))
