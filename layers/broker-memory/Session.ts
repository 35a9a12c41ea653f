import { Effect, SubscriptionRef } from "effect"
import { BrokerError, type Connection, type Purpose } from "../../src/services/Broker.ts"
import type { BrokerState } from "./BrokerState.ts"
import { ClientConnection } from "./ClientConnection.ts"
import { Publisher, type PublishLimits } from "./Publisher.ts"
import { ChannelException } from "./queues/ChannelException.ts"
import { reconnectDelayMs, type Subscriber, type SubscriberClient } from "./Subscriber.ts"
import { Topology } from "./Topology.ts"
import { transmit } from "./Transmission.ts"

export interface ClientOptions extends PublishLimits {
  readonly name: string
  /** The timeout of every request except publishes, in milliseconds. */
  readonly answerTimeoutMs: number
}

type Operation = BrokerError["operation"]

export const brokerError = (operation: Operation, reason: BrokerError["reason"], message: string) =>
  new BrokerError({ operation, reason, message })

/** Keeps one client connected, and sends its requests on the current connection. */
export class Session implements SubscriberClient {
  readonly broker: BrokerState
  readonly topology: Topology
  readonly subscribers = new Set<Subscriber>()
  readonly publishers: Readonly<Record<Purpose, Publisher>>
  readonly #options: ClientOptions
  readonly #state: SubscriptionRef.SubscriptionRef<Connection>
  readonly #fork: (effect: Effect.Effect<void>) => void
  readonly #connectionWaiters = new Set<() => void>()
  #connection: ClientConnection | undefined
  #isClosed = false

  constructor(
    broker: BrokerState,
    options: ClientOptions,
    state: SubscriptionRef.SubscriptionRef<Connection>,
    fork: (effect: Effect.Effect<void>) => void
  ) {
    this.broker = broker
    this.topology = new Topology(broker)
    this.#options = options
    this.#state = state
    this.#fork = fork
    this.publishers = { tasks: this.newPublisher(), retries: this.newPublisher(), statuses: this.newPublisher() }
  }

  readonly report = (what: string, defect: unknown): void =>
    this.#fork(Effect.logError(what, defect instanceof ChannelException ? defect.message : defect))

  newPublisher(): Publisher {
    return new Publisher(this.#options, this.broker.now, this.broker.timers)
  }

  connection(): ClientConnection | undefined {
    return this.#connection
  }

  open(): ClientConnection {
    const opened = new ClientConnection(this.broker.events, this.#options.name)
    this.#connection = opened
    this.broker.attach(opened)
    opened.onEnd((reason) => this.#onConnectionLost(reason))
    opened.onBlocked((reason) => {
      for (const publisher of Object.values(this.publishers)) publisher.block(reason)
      this.#setState(reason === undefined ? { _tag: "Connected" } : { _tag: "Blocked", reason })
    })
    this.redeclare(opened)
    for (const publisher of Object.values(this.publishers)) {
      publisher.attach((publication, onOutcome) =>
        // RabbitMQ would close the channel, and the client would open a new one. Both steps are left out here.
        transmit({ broker: this.broker, connection: opened, publication, onOutcome, onRefused: () => {} })
      )
    }
    return opened
  }

  redeclare(connection: ClientConnection): void {
    this.topology.redeclare(connection, (name, why) =>
      this.report(`The broker refuses to declare the exchange, queue or binding ${name} again`, why)
    )
  }

  close(): void {
    this.#isClosed = true
    for (const publisher of Object.values(this.publishers)) publisher.close("The connection was closed")
    this.broker.timers.clear(this)
    this.#connection?.end("The connection was closed")
    for (const resume of this.#connectionWaiters) resume()
  }

  whenConnected(operation: Operation): Effect.Effect<ClientConnection, BrokerError> {
    return Effect.suspend(() => {
      if (this.#connection !== undefined) return Effect.succeed(this.#connection)
      if (this.#isClosed) return Effect.fail(brokerError(operation, "closed", "The connection was closed"))
      const next = Effect.callback<void>((resume) => {
        const wake = () => resume(Effect.void)
        this.#connectionWaiters.add(wake)
        return Effect.sync(() => this.#connectionWaiters.delete(wake))
      })
      const { answerTimeoutMs } = this.#options
      const message = `Not connected to RabbitMQ within ${answerTimeoutMs} ms`
      return Effect.andThen(
        Effect.timeoutOrElse(next, {
          duration: answerTimeoutMs,
          orElse: () => Effect.fail(brokerError(operation, "unreachable", message))
        }),
        this.whenConnected(operation)
      )
    })
  }

  request<A>(operation: Operation, perform: (connection: ClientConnection) => A): Effect.Effect<A, BrokerError> {
    return Effect.flatMap(this.whenConnected(operation), (current) =>
      this.requestOn(current, operation, () => perform(current))
    )
  }

  /** Executes the request at once. The result arrives later through the connection, which may be frozen or lost. */
  requestOn<A>(current: ClientConnection, operation: Operation, perform: () => A): Effect.Effect<A, BrokerError> {
    const { answerTimeoutMs } = this.#options
    return Effect.callback<A, BrokerError>((resume) => {
      const stop = current.onEnd((reason) => resume(Effect.fail(brokerError(operation, "lost", reason))))
      let result: Effect.Effect<A, BrokerError>
      try {
        result = Effect.succeed(perform())
      } catch (error) {
        result =
          error instanceof ChannelException
            ? Effect.fail(brokerError(operation, error.reason, error.message))
            : Effect.die(error)
      }
      current.send(() => {
        stop()
        resume(result)
      })
      return Effect.sync(stop)
    }).pipe(
      Effect.timeoutOrElse({
        duration: answerTimeoutMs,
        orElse: () =>
          Effect.fail(brokerError(operation, "timeout", `RabbitMQ did not answer within ${answerTimeoutMs} ms`))
      })
    )
  }

  #onConnectionLost(reason: string): void {
    this.#connection = undefined
    for (const publisher of Object.values(this.publishers)) publisher.detach(reason)
    if (!this.#isClosed) this.#reconnect(1, reason)
  }

  #reconnect(attempt: number, failure: string): void {
    this.#setState({ _tag: "Connecting", attempt, failure })
    this.broker.timers.set(this, this.broker.now() + reconnectDelayMs(attempt), () => {
      if (this.#isClosed) return
      if (!this.broker.acceptsConnection(this.#options.name)) {
        this.#reconnect(attempt + 1, "The broker accepts no connections")
        return
      }
      const opened = this.open()
      for (const subscriber of this.subscribers) subscriber.resume(opened)
      this.#setState({ _tag: "Connected" })
      for (const resume of this.#connectionWaiters) resume()
      this.#connectionWaiters.clear()
    })
  }

  #setState(state: Connection): void {
    this.#fork(SubscriptionRef.set(this.#state, state))
  }
}
