import { Deferred, Effect, Exit, Option } from "effect"
import { BrokerError, type Channel as ChannelDoor, type Delivery } from "../../src/services/Broker.ts"
import { problemOf } from "../amqp/Deliveries.ts"
import { Channel } from "./Channel.ts"
import type { ClientConnection } from "./ClientConnection.ts"
import type { Publisher } from "./Publisher.ts"
import { ChannelException } from "./queues/ChannelException.ts"
import { deliveryOf, handOver, type SubscriberClient } from "./Subscriber.ts"
import { transmit } from "./Transmission.ts"

/** The epoch number counts reconnects. This channel never reconnects. */
const epoch = 1

interface OwnChannelOptions {
  readonly client: SubscriberClient
  readonly connection: ClientConnection
  readonly prefetch: number
  readonly publisher: Publisher
  readonly request: <A>(operation: BrokerError["operation"], question: () => A) => Effect.Effect<A, BrokerError>
}

/** Opens a channel that ends with the scope, with the connection or with the first refused request. */
export const make = Effect.fnUntraced(function* ({
  request,
  client,
  connection,
  prefetch,
  publisher
}: OwnChannelOptions) {
  const channel = new Channel(client.broker, connection)
  const ended = Deferred.makeUnsafe<never, BrokerError>()
  const end = (reason: BrokerError["reason"], message: string) => {
    channel.close()
    publisher.close(message)
    Deferred.doneUnsafe(ended, Exit.fail(new BrokerError({ operation: "channel", reason, message })))
  }
  yield* Effect.addFinalizer(() => Effect.sync(() => end("closed", "The channel was closed")))
  connection.onEnd((reason) => end("lost", reason))
  publisher.attach((publication, onOutcome) =>
    transmit({
      broker: client.broker,
      connection,
      publication,
      onOutcome,
      onRefused: ({ message, reason }) => end(reason, message)
    })
  )

  const requestOrEnd = <A>(question: () => A): Effect.Effect<A, BrokerError> =>
    Effect.suspend(() => {
      if (Deferred.isDoneUnsafe(ended)) return Deferred.await(ended)
      return request("channel", () => {
        try {
          return question()
        } catch (error) {
          if (error instanceof ChannelException) connection.send(() => end(error.reason, error.message))
          throw error
        }
      })
    })

  return {
    get: (queue) =>
      Effect.suspend(() => {
        if (client.broker.kindOf(queue) === "stream") return Effect.fail(streamNotReadable(queue))
        return Effect.map(
          requestOrEnd(() => channel.get(queue)),
          (received): Option.Option<Delivery> =>
            received === undefined ? Option.none() : Option.some(deliveryOf(received, channel, epoch))
        )
      }),
    consume: ({ arguments: fields, onDelivery, queue }) =>
      Effect.suspend(() => {
        const problem = problemOf({ prefetch, ...(fields === undefined ? {} : { arguments: fields }) })
        if (problem !== undefined) return Effect.fail(problem)
        const consuming = requestOrEnd(() =>
          channel.consume({
            queue,
            prefetch,
            arguments: fields,
            onStarted: () => {},
            onDelivery: (received) => handOver(deliveryOf(received, channel, epoch), onDelivery, client),
            onCancelled: () => end("lost", `The broker cancelled the consumer of queue ${queue}`)
          })
        )
        return Effect.map(consuming, (consumer) => ({
          queue,
          cancel: Effect.ignore(requestOrEnd(() => channel.cancel(consumer)))
        }))
      }),
    publish: (publication) =>
      Effect.callback((resume) => {
        const abandon = publisher.publish(publication, (outcome) => resume(Effect.succeed(outcome)))
        return Effect.sync(abandon)
      }),
    ended: Deferred.await(ended)
  } satisfies ChannelDoor
})

const streamNotReadable = (queue: string) =>
  new BrokerError({
    operation: "channel",
    reason: "refused",
    message: `The queue ${queue} is a stream, so use consume instead of get`
  })
