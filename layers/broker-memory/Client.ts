import { Effect, Option, SubscriptionRef } from "effect"
import type { Broker, BrokerError, Connection, ConsumeOptions, Server } from "../../src/services/Broker.ts"
import { problemOf } from "../amqp/Deliveries.ts"
import { problemOfShortText } from "../amqp/Messages.ts"
import type { BrokerState } from "./BrokerState.ts"
import type { ClientConnection } from "./ClientConnection.ts"
import * as OwnChannel from "./OwnChannel.ts"
import { brokerError, type ClientOptions, Session } from "./Session.ts"
import { Subscriber } from "./Subscriber.ts"

/** A client that reconnects and repeats its declarations, as `Broker` requires. It closes with its scope. */
export const connect = Effect.fnUntraced(function* (broker: BrokerState, options: ClientOptions) {
  if (!broker.acceptsConnection(options.name))
    return yield* brokerError("connect", "unreachable", "The broker accepts no connections")
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const state = yield* SubscriptionRef.make<Connection>({ _tag: "Connected" })
  const session = new Session(broker, options, state, fork)
  yield* Effect.addFinalizer(() =>
    Effect.andThen(
      Effect.sync(() => session.close()),
      SubscriptionRef.set(state, { _tag: "Closed" })
    )
  )
  session.open()
  return {
    server: Effect.as(session.whenConnected("channel"), server),
    ...topologyOf(session),
    publish: ({ purpose, ...publication }) =>
      Effect.callback((resume) => {
        const abandon = session.publishers[purpose].publish(publication, (outcome) => resume(Effect.succeed(outcome)))
        return Effect.sync(abandon)
      }),
    consume: (consumeOptions) => consume(session, consumeOptions),
    channel: ({ prefetch }) => openChannel(session, prefetch),
    connection: SubscriptionRef.changes(state),
    ping: session.request("channel", () => {})
  } satisfies Broker["Service"]
})

const server: Server = { product: "RabbitMQ (in memory)", version: "3.10.8" }

const topologyOf = (session: Session) => {
  const { broker, topology } = session
  /** Refuses names that AMQP does not allow. */
  const requestAbout = <A>(
    operation: BrokerError["operation"],
    names: ReadonlyArray<string>,
    perform: (connection: ClientConnection) => A
  ) => {
    const problem = names.map((name) => problemOfShortText("name", name)).find((problem) => problem !== undefined)
    return problem === undefined
      ? session.request(operation, perform)
      : Effect.fail(brokerError(operation, "refused", problem))
  }
  return {
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
            : { _tag: "Differs" as const, differs: `PRECONDITION_FAILED - ${differs}` }
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
        broker.atomically(() => {
          const { consumers, messages } = broker.queue(queue, connection)
          return { messages, consumers }
        })
      ).pipe(
        Effect.map(Option.some),
        Effect.catch((error) => (error.reason === "not_found" ? Effect.succeed(Option.none()) : Effect.fail(error)))
      )
  } satisfies Partial<Broker["Service"]>
}

const consume = Effect.fnUntraced(function* (session: Session, options: ConsumeOptions) {
  const problem = problemOf(options)
  if (problem !== undefined) return yield* problem
  const subscriber = new Subscriber(session, options)
  yield* Effect.acquireRelease(
    session.request("consume", (connection) => subscriber.start(connection)),
    () =>
      Effect.sync(() => {
        session.subscribers.delete(subscriber)
        subscriber.close()
      })
  )
  session.subscribers.add(subscriber)
  const cancel = Effect.suspend(() => {
    const current = session.connection()
    if (current !== undefined) return Effect.ignore(session.requestOn(current, "consume", () => subscriber.cancel()))
    // Without a connection, the broker has no consumer to cancel.
    return Effect.sync(() => subscriber.cancel())
  })
  return { queue: options.queue, cancel }
})

const openChannel = Effect.fnUntraced(function* (session: Session, prefetch: number) {
  const problem = problemOf({ prefetch })
  if (problem !== undefined) return yield* brokerError("channel", "refused", problem.message)
  const connection = yield* session.whenConnected("channel")
  return yield* OwnChannel.make({
    client: session,
    connection,
    prefetch,
    publisher: session.newPublisher(),
    request: (operation, question) => session.requestOn(connection, operation, question)
  })
})
