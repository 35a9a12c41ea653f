import type { Channel } from "amqplib/callback_api"
import { Deferred, Effect, Exit, Fiber, Random, type Scope } from "effect"
import type { BrokerError, ConsumeOptions, Subscription } from "../../src/services/Broker.ts"
import * as AmqpFailure from "./AmqpFailure.ts"
import * as Deliveries from "./Deliveries.ts"
import * as Fields from "./Fields.ts"
import type { Link } from "./Link.ts"
import * as QueueKind from "./QueueKind.ts"
import { pauseBefore, type Recovery } from "./Recovery.ts"
import { Settlements } from "./Settlements.ts"
import type { Topology } from "./Topology.ts"

interface Epoch {
  readonly link: Link
  readonly channel: Channel
  readonly settlements: Settlements
  readonly consumerTag: string
  readonly ended: Deferred.Deferred<void>
}

/** If a channel ends sooner, its opening counts as a failed attempt. The next attempt then waits longer. */
const stableAfterMs = 2_000

/**
 * A consumer that survives the loss of its channel or connection. Each channel has a higher epoch number. A new channel
 * does not wait until the deliveries of the last channel are settled.
 */
export const make = Effect.fnUntraced(function* (
  recovery: Recovery,
  topology: Topology,
  options: ConsumeOptions
): Effect.fn.Return<Subscription, BrokerError, Scope.Scope> {
  const problem = Deliveries.problemOf(options)
  if (problem !== undefined) return yield* problem
  const { prefetch, queue } = options
  const random = yield* Random.Random
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  let epochs = 0
  let current: Epoch | undefined
  let resumeAt: number | undefined
  let cancelled = false

  const logDefect = (what: string) => (defect: unknown) => {
    fork(Effect.logError(`The callback ${what} threw an error`, `queue ${queue}`, defect))
  }
  const logDeliveryDefect = logDefect("onDelivery")
  const notify = (what: string, call: () => void) => {
    try {
      call()
    } catch (defect) {
      logDefect(what)(defect)
    }
  }

  const openEpoch = Effect.fnUntraced(function* (link: Link): Effect.fn.Return<Epoch, BrokerError> {
    const number = ++epochs
    const over = Deferred.makeUnsafe<void>()
    let settlements: Settlements | undefined
    let isConsuming = false
    const end = (why: string) => {
      if (!Deferred.doneUnsafe(over, Exit.void)) return
      settlements?.invalidate()
      resumeAt = settlements?.resumeAt ?? resumeAt
      current = undefined
      if (isConsuming) notify("onLost", () => options.onLost?.(number, why))
    }
    const stream = topology.isStream(queue) || (yield* QueueKind.isStream(link, "consume", queue))
    const channel = yield* link.channel("consume", (why) => end(AmqpFailure.messageOf(why)))
    const opened = new Settlements(channel, prefetch)
    settlements = opened
    const source: Deliveries.DeliverySource = { queue, isStream: stream, epoch: number, settlements: opened }
    const given = options.arguments ?? {}
    const consume = link.ask<Epoch>("consume", (answer) =>
      channel.consume(
        queue,
        (message) => {
          if (message === null) {
            end("The broker cancelled the consumer")
            // Closing the channel makes the broker deliver its unsettled messages again.
            fork(link.closeChannel(channel))
          } else if (!cancelled && current?.ended === over)
            Deliveries.deliver(Deliveries.of(message, source), options.onDelivery, logDeliveryDefect)
        },
        { arguments: Fields.toWire(stream ? Deliveries.withResumeOffset(given, resumeAt) : given) },
        (error, reply) => {
          const epoch = { link, channel, settlements: opened, consumerTag: error ? "" : reply.consumerTag, ended: over }
          if (!error) {
            // Set `current` here, because the first delivery may follow in the same read of the socket.
            isConsuming = true
            current = epoch
            if (number > 1) notify("onResumed", () => options.onResumed?.(number))
          }
          answer(error, epoch)
        }
      )
    )
    return yield* link
      .ask<unknown>("consume", (answer) => channel.prefetch(prefetch, false, answer))
      .pipe(
        Effect.andThen(consume),
        Effect.onError(() =>
          Effect.suspend(() => {
            end("Opening the consumer failed")
            return link.closeChannel(channel)
          })
        )
      )
  })

  const reopen = Effect.fnUntraced(function* (lost: Link, tries: number) {
    let previousLink: Link | undefined = lost
    let lastLogged = ""
    for (let attempt = tries; ; attempt++) {
      yield* Effect.sleep(pauseBefore(attempt, random.nextDoubleUnsafe()))
      const begun = yield* Effect.result(
        Effect.gen(function* () {
          const link = yield* recovery.anyLink
          // Only the consumer failed, not the connection. Its queue may be missing, so it is declared again.
          if (link === previousLink) yield* topology.declareAgain(link)
          previousLink = link
          return yield* openEpoch(link)
        })
      )
      if (begun._tag === "Success") return { epoch: begun.success, attempt }
      if (begun.failure.message !== lastLogged)
        yield* Effect.logWarning(
          `The consumer of queue ${queue} could not resume and is retried`,
          begun.failure.message
        )
      lastLogged = begun.failure.message
    }
  })

  const supervise = Effect.fnUntraced(function* (first: Epoch) {
    let epoch = first
    let attempt = 0
    for (;;) {
      const startedAt = performance.now()
      yield* Deferred.await(epoch.ended)
      if (performance.now() - startedAt > stableAfterMs) attempt = 0
      const next = yield* reopen(epoch.link, attempt + 1)
      epoch = next.epoch
      attempt = next.attempt
    }
  })

  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      if (current === undefined) return Effect.void
      const { channel, link, settlements } = current
      current = undefined
      settlements.flush()
      settlements.invalidate()
      return link.closeChannel(channel)
    })
  )
  const supervisor = yield* Effect.forkScoped(supervise(yield* openEpoch(yield* recovery.link("consume"))))

  const cancel = Effect.suspend(() => {
    if (cancelled) return Effect.void
    return Effect.andThen(
      Fiber.interrupt(supervisor),
      Effect.suspend(() => {
        const epoch = current
        if (epoch === undefined) return Effect.void
        return Effect.ignore(
          epoch.link.ask<unknown>("consume", (answer) => epoch.channel.cancel(epoch.consumerTag, answer))
        )
      })
    ).pipe(
      Effect.andThen(
        Effect.sync(() => {
          cancelled = true
        })
      ),
      Effect.uninterruptible
    )
  })
  return { queue, cancel }
})
