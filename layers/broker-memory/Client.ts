import { Effect, Option, SubscriptionRef } from "effect"
import { type Broker, BrokerError, type Connection, type Purpose, type Server } from "../../src/services/Broker.ts"
import { problemOf } from "../amqp/Deliveries.ts"
import { problemOfShortText } from "../amqp/Messages.ts"
import type { BrokerState } from "./BrokerState.ts"
import { ClientConnection } from "./ClientConnection.ts"
import * as OwnChannel from "./OwnChannel.ts"
import { Publisher, type PublishLimits } from "./Publisher.ts"
import { ChannelException } from "./queues/ChannelException.ts"
import { reconnectDelayMs, Subscriber, type SubscriberClient } from "./Subscriber.ts"
import { Topology } from "./Topology.ts"
import { transmit } from "./Transmission.ts"

interface ClientOptions extends PublishLimits {
  readonly name: string
  /** The timeout of every request except publishes, in milliseconds. */
  readonly answerTimeoutMs: number
}

const server: Server = { product: "RabbitMQ (in memory)", version: "3.10.8" }

const purposes: ReadonlyArray<Purpose> = ["tasks", "retries", "statuses"]

type Operation = BrokerError["operation"]

const brokerError = (operation: Operation, reason: BrokerError["reason"], message: string) =>
  new BrokerError({ operation, reason, message })

/** A client that reconnects and repeats its declarations, as `Broker` requires. It closes with its scope. */
export const connect = Effect.fnUntraced(function* (broker: BrokerState, options: ClientOptions) {
  if (!broker.acceptsConnection(options.name))
    return yield* brokerError("connect", "unreachable", "The broker accepts no connections")
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const state = yield* SubscriptionRef.make<Connection>({ _tag: "Connected" })
  const topology = new Topology(broker)
  const subscribers = new Set<Subscriber>()
  const publisher = () => new Publisher(options, broker.now, broker.timers)
  const publishers = { tasks: publisher(), retries: publisher(), statuses: publisher() } satisfies Record<
    Purpose,
    Publisher
  >
  const connectionWaiters = new Set<() => void>()
  let connection: ClientConnection | undefined
  let isClosed = false

  const setState = (newState: Connection) => fork(SubscriptionRef.set(state, newState))

  const client: SubscriberClient = {
    broker,
    connection: () => connection,
    redeclare: (current) =>
      topology.redeclare(current, (name, why) =>
        client.report(`The broker refuses to repeat a declaration: ${name}`, why)
      ),
    report: (what, defect) => {
      fork(Effect.logError(what, defect instanceof ChannelException ? defect.message : defect))
    }
  }

  const open = (): ClientConnection => {
    const opened = new ClientConnection(broker.events, options.name)
    connection = opened
    broker.attach(opened)
    opened.onEnd((reason) => onConnectionLost(reason))
    opened.onBlocked((reason) => {
      for (const purpose of purposes) publishers[purpose].block(reason)
      setState(reason === undefined ? { _tag: "Connected" } : { _tag: "Blocked", reason })
    })
    client.redeclare(opened)
    for (const purpose of purposes) {
      publishers[purpose].attach((publication, onOutcome) =>
        // RabbitMQ would close the channel. The client would open another one at once, so nothing is done here.
        transmit({ broker, connection: opened, publication, onOutcome, onRefused: () => {} })
      )
    }
    return opened
  }

  const onConnectionLost = (reason: string) => {
    connection = undefined
    for (const purpose of purposes) publishers[purpose].detach(reason)
    if (!isClosed) reconnect(1, reason)
  }

  const reconnect = (attempt: number, failure: string) => {
    setState({ _tag: "Connecting", attempt, failure })
    broker.timers.set(state, broker.now() + reconnectDelayMs(attempt), () => {
      if (isClosed) return
      if (!broker.acceptsConnection(options.name)) {
        reconnect(attempt + 1, "The broker accepts no connections")
        return
      }
      const opened = open()
      for (const subscriber of subscribers) subscriber.resume(opened)
      setState({ _tag: "Connected" })
      for (const resume of connectionWaiters) resume()
      connectionWaiters.clear()
    })
  }

  const whenConnected = (operation: Operation): Effect.Effect<ClientConnection, BrokerError> =>
    Effect.suspend(() => {
      if (connection !== undefined) return Effect.succeed(connection)
      if (isClosed) return Effect.fail(brokerError(operation, "closed", "The connection was closed"))
      const next = Effect.callback<void>((resume) => {
        const wake = () => resume(Effect.void)
        connectionWaiters.add(wake)
        return Effect.sync(() => connectionWaiters.delete(wake))
      })
      const message = `Not connected to RabbitMQ within ${options.answerTimeoutMs} ms`
      return Effect.andThen(
        Effect.timeoutOrElse(next, {
          duration: options.answerTimeoutMs,
          orElse: () => Effect.fail(brokerError(operation, "unreachable", message))
        }),
        whenConnected(operation)
      )
    })

  /** Carries out the request at once. The result arrives through the connection, which may be frozen or lost. */
  const requestOn = <A>(
    current: ClientConnection,
    operation: Operation,
    perform: () => A
  ): Effect.Effect<A, BrokerError> =>
    Effect.callback<A, BrokerError>((resume) => {
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
        duration: options.answerTimeoutMs,
        orElse: () =>
          Effect.fail(brokerError(operation, "timeout", `RabbitMQ did not answer within ${options.answerTimeoutMs} ms`))
      })
    )

  const request = <A>(
    operation: Operation,
    perform: (connection: ClientConnection) => A
  ): Effect.Effect<A, BrokerError> =>
    Effect.flatMap(whenConnected(operation), (current) => requestOn(current, operation, () => perform(current)))

  /** Refuses names that AMQP does not allow. */
  const requestAbout = <A>(
    operation: Operation,
    names: ReadonlyArray<string>,
    perform: (connection: ClientConnection) => A
  ) => {
    const problem = names.map((name) => problemOfShortText("name", name)).find((problem) => problem !== undefined)
    return problem === undefined ? request(operation, perform) : Effect.fail(brokerError(operation, "refused", problem))
  }

  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      isClosed = true
      for (const purpose of purposes) publishers[purpose].close("The connection was closed")
      broker.timers.clear(state)
      connection?.end("The connection was closed")
      for (const resume of connectionWaiters) resume()
      return SubscriptionRef.set(state, { _tag: "Closed" })
    })
  )
  open()

  return {
    server: Effect.as(whenConnected("channel"), server),
    declare: (declarations) =>
      requestAbout(
        "declare",
        [...declarations.exchanges, ...declarations.queues].map(({ name }) => name),
        (connection) => topology.declare(declarations, connection)
      ),
    examine: (declared) =>
      requestAbout("examine", ["exchange" in declared ? declared.exchange.name : declared.queue.name], (connection) =>
        "exchange" in declared
          ? broker.exchangeDifference(declared.exchange)
          : broker.queueDifference(declared.queue, connection)
      ).pipe(
        Effect.map((differs) =>
          differs === undefined
            ? { _tag: "Same" as const }
            : { _tag: "Differs" as const, differs: mismatchMessage(differs) }
        ),
        Effect.catch((error) =>
          error.reason === "not_found" ? Effect.succeed({ _tag: "Missing" as const }) : Effect.fail(error)
        )
      ),
    remove: ({ exchanges = [], queues = [] }) =>
      Effect.suspend(() => {
        topology.forget(queues, exchanges)
        return requestAbout("remove", [...queues, ...exchanges], (connection) =>
          broker.atomically(() => {
            for (const name of queues) broker.deleteQueue(name, connection)
            for (const name of exchanges) broker.deleteExchange(name)
          })
        )
      }),
    inspect: (queue) =>
      requestAbout("inspect", [queue], (connection) =>
        broker.atomically(() => queueCounts(broker, queue, connection))
      ).pipe(
        Effect.map(Option.some),
        Effect.catch((error) => (error.reason === "not_found" ? Effect.succeed(Option.none()) : Effect.fail(error)))
      ),
    publish: ({ purpose, ...publication }) =>
      Effect.callback((resume) => {
        const abandon = publishers[purpose].publish(publication, (outcome) => resume(Effect.succeed(outcome)))
        return Effect.sync(abandon)
      }),
    consume: (consumeOptions) =>
      Effect.gen(function* () {
        const problem = problemOf(consumeOptions)
        if (problem !== undefined) return yield* problem
        const subscriber = new Subscriber(client, consumeOptions)
        yield* Effect.acquireRelease(
          request("consume", (connection) => subscriber.start(connection)),
          () =>
            Effect.sync(() => {
              subscribers.delete(subscriber)
              subscriber.close()
            })
        )
        subscribers.add(subscriber)
        const cancel = Effect.suspend(() => {
          const current = connection
          if (current !== undefined) return Effect.ignore(requestOn(current, "consume", () => subscriber.cancel()))
          // The consumer has ended with its connection.
          return Effect.sync(() => subscriber.cancel())
        })
        return { queue: consumeOptions.queue, cancel }
      }),
    channel: ({ prefetch }) =>
      Effect.gen(function* () {
        const problem = problemOf({ prefetch })
        if (problem !== undefined) return yield* brokerError("channel", "refused", problem.message)
        const current = yield* whenConnected("channel")
        return yield* OwnChannel.make({
          client,
          connection: current,
          prefetch,
          publisher: publisher(),
          request: (operation, question) => requestOn(current, operation, question)
        })
      }),
    connection: SubscriptionRef.changes(state),
    ping: request("channel", () => {})
  } satisfies Broker["Service"]
})

const mismatchMessage = (differs: string): string => `PRECONDITION_FAILED - ${differs}`

const queueCounts = (broker: BrokerState, name: string, connection: ClientConnection) => {
  const { consumers, messages } = broker.queue(name, connection)
  return { messages, consumers }
}
