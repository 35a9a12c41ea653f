import { Clock, Context, Duration, Effect, Layer, Scheduler, type Scope } from "effect"
import { Broker, type BrokerError } from "../src/services/Broker.ts"
import { BrokerState } from "./broker-memory/BrokerState.ts"
import * as Client from "./broker-memory/Client.ts"
import { Timers } from "./broker-memory/queues/Timers.ts"

export interface ServerOptions {
  /** Bytes of messages that it holds, each counted with 512 more; past it publishes are blocked. Default: 256 MiB. */
  readonly memoryLimit?: number | undefined
}

export interface ConnectOptions {
  /** What `drop` and `cut` know the connection by. Default: "memory". */
  readonly name?: string | undefined
  /** How many publishes of one purpose may be unanswered. Default: 256. */
  readonly window?: number | undefined
  /** For a publish: its turn and its answer. Default: 10 seconds. */
  readonly publishWithin?: Duration.Input | undefined
  /** For every other question to the broker. Default: 5 seconds. */
  readonly answerWithin?: Duration.Input | undefined
}

/**
 * A RabbitMQ 3.10 within the process: a model that answers as the real one does, on the clock that it was made under.
 * On a `TestClock` a retry queue of thirty seconds is over as soon as the test says so. Nothing is shared with another
 * process, and nothing outlives this one.
 */
export class BrokerServer extends Context.Service<
  BrokerServer,
  {
    /** A connection of its own, for as long as the scope is open. Fails while the server is cut off. */
    readonly connect: (options?: ConnectOptions) => Effect.Effect<Broker["Service"], BrokerError, Scope.Scope>

    /**
     * Every connection is lost, or those of one name: unsettled deliveries return to their queues, exclusive queues are
     * gone, unanswered publishes are unknown. Clients come back at once, consumers under a new epoch.
     */
    readonly drop: (connection?: string) => Effect.Effect<void>

    /** Every connection is lost, or those of one name, and none of these is accepted before `restore`. */
    readonly cut: (connection?: string) => Effect.Effect<void>
    readonly restore: Effect.Effect<void>

    /** Nothing that the server says arrives before `thaw`: what clients ask for happens, and they wait for the answer. */
    readonly freeze: Effect.Effect<void>
    readonly thaw: Effect.Effect<void>

    /**
     * No publish is taken before `unblock`. As with the real one, a connection learns it by its next publish, which
     * stays unanswered meanwhile.
     */
    readonly block: (reason: string) => Effect.Effect<void>
    readonly unblock: Effect.Effect<void>

    /**
     * Every connection is lost; queues and exchanges that are not durable are gone, and messages that are not
     * persistent, unless they lie in a quorum queue or a stream. Clients come back at once.
     */
    readonly restart: Effect.Effect<void>
  }
>()("svc/BrokerServer") {}

/** A server that is empty, and gone with the scope. */
export const makeServer = Effect.fnUntraced(function* (
  options: ServerOptions = {}
): Effect.fn.Return<BrokerServer["Service"], never, Scope.Scope> {
  const clock = yield* Clock.Clock
  const context = yield* Effect.context<never>()
  const dispatcher = Context.get(context, Scheduler.Scheduler).makeDispatcher()
  // whole ones, as RabbitMQ counts: whoever wakes up after a pause with fractions must not be early by one of them
  const now = () => Math.floor(clock.currentTimeMillisUnsafe())
  const timers = yield* Effect.acquireRelease(
    Effect.sync(() => new Timers(now, Effect.runForkWith(context))),
    (timers) => Effect.sync(() => timers.stop())
  )
  const node = new BrokerState({
    now,
    timers,
    defer: (task) => dispatcher.scheduleTask(task, 0),
    memoryLimit: options.memoryLimit ?? 256 * 1_024 * 1_024
  })
  return BrokerServer.of({
    connect: ({ answerWithin = "5 seconds", name = "memory", publishWithin = "10 seconds", window = 256 } = {}) =>
      Client.connect(node, {
        name,
        window,
        timeoutMs: Duration.toMillis(publishWithin),
        answerTimeoutMs: Duration.toMillis(answerWithin)
      }),
    drop: (connection) => Effect.sync(() => node.drop("The connection was lost", connection)),
    cut: (connection) => Effect.sync(() => node.cut(connection)),
    restore: Effect.sync(() => node.restore()),
    freeze: Effect.sync(() => {
      node.events.frozen = true
    }),
    thaw: Effect.sync(() => {
      node.events.frozen = false
    }),
    block: (reason) => Effect.sync(() => node.block(reason)),
    unblock: Effect.sync(() => node.block(undefined)),
    restart: Effect.sync(() => node.restart())
  })
})

/** A server, for programs that connect to it themselves, and for tests that make it fail. */
export const layerServer = (options?: ServerOptions): Layer.Layer<BrokerServer> =>
  Layer.effect(BrokerServer, makeServer(options))

/** A connection to the server that is provided. */
export const layerConnection = (options?: ConnectOptions): Layer.Layer<Broker, BrokerError, BrokerServer> =>
  Layer.effect(
    Broker,
    Effect.flatMap(BrokerServer, (server) => server.connect(options))
  )

/** A server of its own with one connection: all that a program needs that runs in one process. */
export const layer = (options?: ServerOptions & ConnectOptions): Layer.Layer<Broker, BrokerError> =>
  Layer.provide(layerConnection(options), layerServer(options))
