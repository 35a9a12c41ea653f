import { Deferred, Effect, Exit, Option, type Scope } from "effect"
import { BrokerError, type Channel, type Delivery, type Outcome, type Subscription } from "../../src/services/Broker.ts"
import * as AmqpFailure from "./AmqpFailure.ts"
import * as Deliveries from "./Deliveries.ts"
import * as Fields from "./Fields.ts"
import type { Link } from "./Link.ts"
import { Publisher, type PublisherLimits } from "./Publisher.ts"
import * as QueueKind from "./QueueKind.ts"
import { Settlements } from "./Settlements.ts"

/** The epoch number counts reconnects. This channel never reconnects. */
const epoch = 1

/** A channel that ends with its scope or with an error. */
export const make = Effect.fnUntraced(function* (
  link: Link,
  limits: PublisherLimits,
  prefetch: number
): Effect.fn.Return<Channel, BrokerError, Scope.Scope> {
  const problem = Deliveries.problemOf({ prefetch })
  if (problem !== undefined)
    return yield* new BrokerError({ operation: "channel", reason: problem.reason, message: problem.message })
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const ended = Deferred.makeUnsafe<never, BrokerError>()
  const publisher = new Publisher(limits, () => {})
  let settlements: Settlements | undefined
  const end = (why: Error) => {
    const failure = why instanceof BrokerError ? why : AmqpFailure.toBrokerError("channel", why)
    settlements?.invalidate()
    publisher.detach(why)
    publisher.close(failure.message)
    // This must come last, because fibers that wait for `ended` continue inside this call.
    Deferred.doneUnsafe(ended, Exit.fail(failure))
  }
  const channel = yield* Effect.acquireRelease(link.confirmChannel("channel", end), (channel) =>
    Effect.suspend(() => {
      settlements?.flush()
      end(closed)
      return link.closeChannel(channel)
    })
  )
  const ask = <A>(question: (answer: (error: Error, reply: A) => void) => void): Effect.Effect<A, BrokerError> =>
    Effect.suspend(() => (Deferred.isDoneUnsafe(ended) ? Deferred.await(ended) : link.ask<A>("channel", question)))
  yield* ask<unknown>((answer) => channel.prefetch(prefetch, false, answer))
  const opened = new Settlements(channel, prefetch)
  settlements = opened
  publisher.attach(channel, link.openOutbox(channel))

  const isStream = (queue: string) =>
    QueueKind.isStream(link, "channel", queue).pipe(
      // The request for a missing queue must still be sent, because its refusal ends the channel.
      Effect.catchIf(
        ({ reason }) => reason === "not_found",
        () => Effect.succeed(false)
      )
    )
  const streams = new Map<string, boolean>()
  const sourceOf = (queue: string): Effect.Effect<Deliveries.DeliverySource, BrokerError> => {
    const known = streams.get(queue)
    return Effect.map(known === undefined ? isStream(queue) : Effect.succeed(known), (stream) => {
      streams.set(queue, stream)
      return { queue, isStream: stream, epoch, settlements: opened }
    })
  }

  const get: Channel["get"] = Effect.fnUntraced(function* (queue) {
    const source = yield* sourceOf(queue)
    if (source.isStream)
      return yield* new BrokerError({
        operation: "channel",
        reason: "refused",
        message: `The queue ${queue} is a stream, so use consume instead of get`
      })
    return yield* ask<Option.Option<Delivery>>((answer) =>
      channel.get(queue, { noAck: false }, (error, message) =>
        answer(error, message ? Option.some(Deliveries.of(message, source)) : Option.none())
      )
    )
  })

  const consume: Channel["consume"] = Effect.fnUntraced(function* (options) {
    const { onDelivery, queue } = options
    const problem = Deliveries.problemOf({ ...options, prefetch })
    if (problem !== undefined) return yield* problem
    const source = yield* sourceOf(queue)
    let cancelled = false
    const logDefect = (defect: unknown) => {
      fork(Effect.logError("The callback onDelivery threw an error", `queue ${queue}`, defect))
    }
    const consumerTag = yield* ask<string>((answer) =>
      channel.consume(
        queue,
        (message) => {
          if (message === null) {
            end(
              new BrokerError({
                operation: "channel",
                reason: "lost",
                message: `The broker cancelled the consumer of queue ${queue}`
              })
            )
            fork(link.closeChannel(channel))
          } else {
            const delivery = Deliveries.of(message, source)
            if (!cancelled) Deliveries.deliver(delivery, onDelivery, logDefect)
          }
        },
        { arguments: Fields.toWire(options.arguments ?? {}) },
        (error, reply) => answer(error, error ? "" : reply.consumerTag)
      )
    )
    const cancel = Effect.ignore(ask<unknown>((answer) => channel.cancel(consumerTag, answer))).pipe(
      Effect.andThen(
        Effect.sync(() => {
          cancelled = true
        })
      )
    )
    return { queue, cancel } satisfies Subscription
  })

  return {
    get,
    consume,
    publish: (publication) => Effect.callback<Outcome>((resume) => Effect.sync(publisher.publish(publication, resume))),
    ended: Deferred.await(ended)
  }
})

const closed = new BrokerError({ operation: "channel", reason: "closed", message: "The channel was closed" })
