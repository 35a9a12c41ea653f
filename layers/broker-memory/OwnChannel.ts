import { Deferred, Effect, Exit, Option } from "effect"
import { BrokerError, type Channel as ChannelDoor, type Delivery } from "../../src/services/Broker.ts"
import { Channel } from "./Channel.ts"
import type { Publisher } from "./Publisher.ts"
import { type Connecting, deliveryOf, hand } from "./Subscriber.ts"
import { transmit } from "./Transmission.ts"
import type { Line } from "./Wire.ts"

/** The only epoch there is. */
const epoch = 1

export interface Parts {
  readonly client: Connecting
  readonly line: Line
  readonly prefetch: number
  readonly publisher: Publisher
  /** A question to the broker, whose answer comes by the line. */
  readonly ask: <A>(operation: BrokerError["operation"], question: () => A) => Effect.Effect<A, BrokerError>
}

/** A channel that ends with its scope, or with the first thing that the broker refuses, and does not come back. */
export const make = Effect.fnUntraced(function* ({ ask, client, line, prefetch, publisher }: Parts) {
  const channel = new Channel(client.node, line)
  const ended = Deferred.makeUnsafe<never, BrokerError>()
  const end = (reason: BrokerError["reason"], message: string) => {
    channel.close()
    publisher.close(message)
    Deferred.doneUnsafe(ended, Exit.fail(new BrokerError({ operation: "channel", reason, message })))
  }
  yield* Effect.addFinalizer(() => Effect.sync(() => end("closed", "The channel was closed")))
  line.onEnd((reason) => end("lost", reason))
  publisher.attach((publication, answered) =>
    transmit({
      node: client.node,
      line,
      publication,
      answered,
      refused: ({ message, reason }) => end(reason, message)
    })
  )

  /** What is refused here, ends the channel. */
  const demand = <A>(question: () => A): Effect.Effect<A, BrokerError> =>
    Effect.suspend(() => {
      if (Deferred.isDoneUnsafe(ended)) return Deferred.await(ended)
      return Effect.raceFirst(ask("channel", question), Deferred.await(ended)).pipe(
        Effect.tapError(({ message, reason }) => Effect.sync(() => end(reason, message)))
      )
    })

  return {
    get: (queue) =>
      demand(() => channel.get(queue)).pipe(
        Effect.map(
          (arrived): Option.Option<Delivery> =>
            arrived === undefined ? Option.none() : Option.some(deliveryOf(arrived, channel, epoch))
        )
      ),
    consume: ({ arguments: fields, onDelivery, queue }) =>
      Effect.map(
        demand(() =>
          channel.consume({
            queue,
            prefetch,
            arguments: fields,
            onStarted: () => {},
            onDelivery: (arrived) => hand(deliveryOf(arrived, channel, epoch), onDelivery, client),
            onCancelled: () => end("not_found", "The broker cancelled the consumer")
          })
        ),
        (consumer) => ({ queue, cancel: Effect.ignore(demand(() => channel.cancel(consumer))) })
      ),
    publish: (publication) =>
      Effect.callback((resume) => {
        const leave = publisher.publish(publication, (outcome) => resume(Effect.succeed(outcome)))
        return Effect.sync(leave)
      }),
    ended: Deferred.await(ended)
  } satisfies ChannelDoor
})
