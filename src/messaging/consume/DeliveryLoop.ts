import { Cause, Deferred, Duration, Effect, Exit, Fiber } from "effect"
import type { Broker, Delivery, Fields } from "../../services/Broker.ts"
import * as HandlerFailure from "../retry/HandlerFailure.ts"
import * as DeliverySpan from "./DeliverySpan.ts"
import type { DeliveryVerdict } from "./DeliveryVerdict.ts"
import { DenseSet, DenseSetItem } from "./DenseSet.ts"

export interface Options<R> {
  /** Of the consumer, for the log. */
  readonly name: string
  readonly queue: string
  /** Deliveries that are worked on at once, which is also the prefetch: 1 to 65,535. */
  readonly concurrency: number
  /**
   * Of the subscription, such as `x-priority`. An effect is asked anew for each, once it is prepared, and a subscription
   * then ends with its channel: where a stream is read from holds for the stream that there was.
   */
  readonly arguments?: Fields | Effect.Effect<Fields, unknown, R>
  /** Before every subscription: what must be declared. */
  readonly prepare: Effect.Effect<unknown, unknown, R>
  /**
   * From a delivery to its settlement. What has to be published is published within it, since only its success settles
   * anything: a crash between the two makes a duplicate, never a loss. A failure gives the delivery back to its queue
   * after a pause. It is interrupted when the channel is lost, as the broker then delivers the message again.
   */
  readonly work: (delivery: Delivery) => Effect.Effect<DeliveryVerdict, unknown, R>
  /** Once, when the first subscription stands. */
  readonly onStarted?: () => void
  /** Something failed that no message is to blame for; it is tried again after the pause. */
  readonly onError?: (error: HandlerFailure.HandlerFailure, retryDelaySeconds: number) => void
  /**
   * How long the queue may be silent, in seconds, before the loop enters anew: it asks the broker whether this consumer
   * still counts, and subscribes again where it does not. `null`: it waits for a message for ever. Default: 1.
   */
  readonly consumeTimeoutSeconds?: number | null | undefined
  /** The pause after an error. Default: 2. */
  readonly idleRetrySeconds?: number | undefined
  /** For what is worked on when the loop stops; then it is interrupted and returns to the queue. Default: 10 seconds. */
  readonly stopWithin?: Duration.Input | undefined
  /** With no slot free and nothing settled for so long, a warning names the messages. Default: 1 minute. */
  readonly stalledAfter?: Duration.Input | undefined
}

export interface DeliveryLoop<R> {
  /**
   * Consumes until it is stopped. Interrupting it stops it as well. Fails never: errors are reported, and tried again. At
   * most one at a time.
   */
  readonly run: Effect.Effect<void, never, R>
  /** No further delivery is taken; succeeds when those that were taken are settled or given back. */
  readonly stop: Effect.Effect<void>
}

/** Of interrupted work, before it is left behind. */
const interruptTimeout = "1 second"

/**
 * Handlers of lost channels that let nobody interrupt them, for each place: recovery does not wait for them, but a
 * connection that comes and goes must not heap them up without end.
 */
const maxAbandonedPerSlot = 4

/** Silent looks with messages waiting, before the subscription is taken for one that the broker has forgotten. */
const maxSilentChecks = 30

/**
 * A delivery in work. A fiber for each costs half a microsecond, of the 25 that a checked message takes with amqplib's
 * part, and it is what lets a lost channel interrupt the handlers of its deliveries.
 */
class InFlight extends DenseSetItem {
  readonly delivery: Delivery
  /** Of the deliveries of this loop. */
  readonly sequence: number
  fiber: Fiber.Fiber<unknown, unknown> | undefined
  /** The broker gives it to somebody again, or will: it is not to be settled. */
  isRevoked = false

  constructor(delivery: Delivery, number: number) {
    super()
    this.delivery = delivery
    this.sequence = number
  }
}

/** The loop that all consumers share: from a subscription to settled deliveries, through every failure on the way. */
export const make = <R>(broker: Broker["Service"], options: Options<R>): DeliveryLoop<R> => {
  const { concurrency, consumeTimeoutSeconds = 1, idleRetrySeconds = 2, name, queue } = options
  const stalledAfter = Duration.fromInputUnsafe(options.stalledAfter ?? "1 minute")
  const stopWithin = Duration.fromInputUnsafe(options.stopWithin ?? "10 seconds")
  let current: { readonly stopping: Deferred.Deferred<void>; readonly ended: Deferred.Deferred<void> } | undefined

  const consume = Effect.fnUntraced(function* (stopping: Deferred.Deferred<void>) {
    const fork = Effect.runForkWith(yield* Effect.context<R>())
    const withSpan = yield* DeliverySpan.make
    const inFlight = new DenseSet<InFlight>()
    /** Their channel is gone, and they have not ended yet. */
    const abandoned = new Set<InFlight>()
    const maxAbandoned = concurrency * maxAbandonedPerSlot
    /** Those that wait because too many are abandoned. */
    const postponed: Array<InFlight> = []
    let deliveredCount = 0
    let settledCount = 0
    let onEmpty: (() => void) | undefined
    let started = false

    const finish = (work: InFlight) => {
      abandoned.delete(work)
      inFlight.delete(work)
      if (inFlight.size === 0) onEmpty?.()
      if (postponed.length > 0 && abandoned.size < maxAbandoned) start(postponed.shift())
    }

    const accept = (delivery: Delivery) => {
      const work = new InFlight(delivery, deliveredCount++)
      inFlight.add(work)
      if (abandoned.size < maxAbandoned) start(work)
      else postponed.push(work)
    }

    const start = (work: InFlight | undefined) => {
      if (work === undefined) return
      const fiber = fork(
        withSpan(
          work.delivery,
          Effect.suspend(() => options.work(work.delivery))
        )
      )
      work.fiber = fiber
      // the channel was lost while it took its first steps
      if (work.isRevoked) fiber.interruptUnsafe()
      fiber.addObserver((exit) => {
        if (work.isRevoked) finish(work)
        else if (Exit.isSuccess(exit)) settle(work, exit.value)
        else giveBack(work, exit.cause)
      })
    }

    const settle = (work: InFlight, { settle, settled: onSettled }: DeliveryVerdict) => {
      settledCount++
      const settlement = work.delivery.settle(settle)
      finish(work)
      if (settlement !== "requested" || onSettled === undefined) return
      try {
        onSettled()
      } catch (defect) {
        fork(Effect.logError(`What follows a settlement of ${name} threw`, defect))
      }
    }

    /** It keeps its place meanwhile, so that an error that concerns all of them does not turn into a spin. */
    const giveBack = (work: InFlight, cause: Cause.Cause<unknown>) => {
      const fiber = fork(
        Effect.andThen(
          reportFailure(cause, `A message of queue ${queue} goes back to it`),
          Effect.raceFirst(Effect.sleep(Duration.seconds(idleRetrySeconds)), Deferred.await(stopping))
        )
      )
      work.fiber = fiber
      fiber.addObserver(() => {
        if (work.isRevoked) finish(work)
        else settle(work, { settle: "requeue" })
      })
    }

    const revoke = (works: ReadonlyArray<InFlight>) => {
      for (const work of works) {
        work.isRevoked = true
        inFlight.delete(work)
        if (postponed.includes(work)) postponed.splice(postponed.indexOf(work), 1)
        else abandoned.add(work)
        work.fiber?.interruptUnsafe()
      }
      if (inFlight.size === 0) onEmpty?.()
    }

    const reportFailure = (cause: Cause.Cause<unknown>, consequence: string) =>
      Effect.suspend(() => {
        const error = HandlerFailure.ofCause(cause)
        options.onError?.(error, idleRetrySeconds)
        return Effect.logWarning(`${name}: ${consequence}`, error.exceptionType, Cause.squash(cause))
      })

    const whenEmpty = Effect.callback<void>((resume) => {
      if (inFlight.size === 0) {
        resume(Effect.void)
        return
      }
      onEmpty = () => resume(Effect.void)
      return Effect.sync(() => {
        onEmpty = undefined
      })
    })

    /**
     * The work that ends in time is settled. The rest is interrupted, and returns to its queue with the channel. One
     * deadline holds for the work and for the broker's answer to the cancel, which a frozen broker never gives.
     */
    const drain = Effect.fnUntraced(function* (cancel: Effect.Effect<void>, stopAccepting: () => void) {
      const cancelling = yield* Effect.forkDetach(cancel, { startImmediately: true })
      yield* Effect.timeoutOption(Effect.andThen(Fiber.await(cancelling), whenEmpty), stopWithin)
      stopAccepting()
      if (inFlight.size > 0) {
        yield* Effect.logWarning(`${name} gives back what it could not end in time`, namesOf(inFlight))
        revoke(inOrder(inFlight))
      }
      const fibers = Array.from(abandoned).flatMap(({ fiber }) => (fiber === undefined ? [] : [awaitFiber(fiber)]))
      yield* Effect.timeoutOption(Effect.all(fibers, { concurrency: "unbounded", discard: true }), interruptTimeout)
      if (abandoned.size > 0) {
        yield* Effect.logWarning(`${name} leaves handlers behind that cannot be interrupted`, namesOf(abandoned))
      }
    })

    const watchForStalls = Effect.gen(function* () {
      const settledBefore = settledCount
      const full = inFlight.size >= concurrency
      yield* Effect.sleep(stalledAfter)
      if (!full || inFlight.size < concurrency || settledCount !== settledBefore) return
      yield* Effect.logWarning(
        `${name} has settled nothing for ${Duration.format(stalledAfter)}, and all ${concurrency} places are taken`,
        namesOf(inFlight)
      )
    })

    /** Ends when the subscription has to be made anew. */
    const watchForSilence = Effect.fnUntraced(function* (seconds: number) {
      let checksWithoutConsumer = 0
      let checksWithBacklog = 0
      for (;;) {
        const deliveredBefore = deliveredCount
        yield* Effect.sleep(Duration.seconds(seconds))
        if (deliveredCount !== deliveredBefore || inFlight.size > 0) {
          checksWithoutConsumer = 0
          checksWithBacklog = 0
          continue
        }
        // the connection is being made anew, and the subscription with it
        const inspection = yield* Effect.option(broker.inspect(queue))
        if (inspection._tag === "None") continue
        const { consumers, messages } =
          inspection.value._tag === "Some" ? inspection.value.value : { consumers: 0, messages: 0 }
        checksWithoutConsumer = consumers === 0 ? checksWithoutConsumer + 1 : 0
        checksWithBacklog = messages > 0 ? checksWithBacklog + 1 : 0
        // once may be the moment between two channels
        if (checksWithoutConsumer > 1 || checksWithBacklog > maxSilentChecks) {
          return yield* Effect.logWarning(`${name} subscribes to queue ${queue} again: the broker does not serve it`)
        }
      }
    })

    const subscribe = Effect.gen(function* () {
      yield* options.prepare
      const hasEffectArguments = Effect.isEffect(options.arguments)
      const given = Effect.isEffect(options.arguments) ? yield* options.arguments : options.arguments
      const subscriptionEnded = Deferred.makeUnsafe<void>()
      const { cancel } = yield* broker.consume({
        queue,
        prefetch: concurrency,
        ...(given && { arguments: given }),
        onDelivery: (delivery) => {
          if (!Deferred.isDoneUnsafe(subscriptionEnded)) accept(delivery)
        },
        onLost: (epoch) => revoke(inOrder(inFlight).filter(({ delivery }) => delivery.epoch === epoch)),
        // and not when the channel is lost: by now there is a broker to ask
        onResumed: () => {
          if (hasEffectArguments) Deferred.doneUnsafe(subscriptionEnded, Exit.void)
        }
      })
      yield* Effect.addFinalizer(() => drain(cancel, () => Deferred.doneUnsafe(subscriptionEnded, Exit.void)))
      if (!started) {
        started = true
        options.onStarted?.()
      }
      const watchSilence = consumeTimeoutSeconds === null ? Effect.never : watchForSilence(consumeTimeoutSeconds)
      yield* Effect.raceAllFirst([watchSilence, Deferred.await(subscriptionEnded), Effect.forever(watchForStalls)])
    }).pipe(Effect.scoped)

    const subscribeForever = subscribe.pipe(
      Effect.catchCause((cause) =>
        Effect.andThen(
          reportFailure(cause, `queue ${queue} cannot be consumed from`),
          Effect.sleep(Duration.seconds(idleRetrySeconds))
        )
      ),
      Effect.forever
    )
    yield* Effect.raceFirst(Deferred.await(stopping), subscribeForever)
  })

  return {
    run: Effect.suspend(() => {
      if (current !== undefined) return Effect.die(new Error(`${name} is running already.`))
      const running = { stopping: Deferred.makeUnsafe<void>(), ended: Deferred.makeUnsafe<void>() }
      current = running
      return Effect.ensuring(
        consume(running.stopping),
        Effect.sync(() => {
          current = undefined
          Deferred.doneUnsafe(running.ended, Exit.void)
        })
      )
    }),
    stop: Effect.suspend(() => {
      if (current === undefined) return Effect.void
      const { ended, stopping } = current
      // a loop that only pauses ends within this call
      Deferred.doneUnsafe(stopping, Exit.void)
      return Deferred.await(ended)
    })
  }
}

const awaitFiber = (fiber: Fiber.Fiber<unknown, unknown>): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const leave = fiber.addObserver(() => resume(Effect.void))
    return Effect.sync(leave)
  })

const maxNamedDeliveries = 10

/** As they were delivered. */
const inOrder = (works: Iterable<InFlight>): Array<InFlight> =>
  Array.from(works).sort((one, other) => one.sequence - other.sequence)

/** By what a person can find them by. */
const namesOf = (works: Iterable<InFlight>): string => {
  const all = inOrder(works)
  const named = all.slice(0, maxNamedDeliveries).map(({ delivery }) => nameOf(delivery))
  const more = all.length - named.length
  return `${named.join(", ")}${more > 0 ? ` and ${more} more` : ""}`
}

const nameOf = ({ deliveryTag, properties }: Delivery): string => {
  const taskId = properties.headers?.["task_id"]
  return typeof taskId === "string" ? taskId : (properties.correlationId ?? `delivery ${deliveryTag}`)
}
