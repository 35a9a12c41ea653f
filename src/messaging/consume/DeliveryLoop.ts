import { Cause, Deferred, Duration, Effect, Exit, Fiber } from "effect"
import type { Broker, Delivery, Fields } from "../../services/Broker.ts"
import * as HandlerFailure from "../retry/HandlerFailure.ts"
import { Bag, InBag } from "./Bag.ts"
import * as DeliverySpan from "./DeliverySpan.ts"
import type { Verdict } from "./Verdict.ts"

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
  readonly work: (delivery: Delivery) => Effect.Effect<Verdict, unknown, R>
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
const interruptWithin = "1 second"

/**
 * Handlers of lost channels that let nobody interrupt them, for each place: recovery does not wait for them, but a
 * connection that comes and goes must not heap them up without end.
 */
const abandonedPerPlace = 4

/** Silent looks with messages waiting, before the subscription is taken for one that the broker has forgotten. */
const forgottenAfter = 30

/**
 * A delivery in work. A fiber for each costs half a microsecond, of the 25 that a checked message takes with amqplib's
 * part, and it is what lets a lost channel interrupt the handlers of its deliveries.
 */
class InWork extends InBag {
  readonly delivery: Delivery
  /** Of the deliveries of this loop. */
  readonly number: number
  fiber: Fiber.Fiber<unknown, unknown> | undefined
  /** The broker gives it to somebody again, or will: it is not to be settled. */
  isVoid = false

  constructor(delivery: Delivery, number: number) {
    super()
    this.delivery = delivery
    this.number = number
  }
}

/** The loop that all consumers share: from a subscription to settled deliveries, through every failure on the way. */
export const make = <R>(broker: Broker["Service"], options: Options<R>): DeliveryLoop<R> => {
  const { concurrency, consumeTimeoutSeconds = 1, idleRetrySeconds = 2, name, queue } = options
  const stalledAfter = Duration.fromInputUnsafe(options.stalledAfter ?? "1 minute")
  const stopWithin = Duration.fromInputUnsafe(options.stopWithin ?? "10 seconds")
  let current: { readonly stopping: Deferred.Deferred<void>; readonly ended: Deferred.Deferred<void> } | undefined

  const consuming = Effect.fnUntraced(function* (stopping: Deferred.Deferred<void>) {
    const fork = Effect.runForkWith(yield* Effect.context<R>())
    const traced = yield* DeliverySpan.make
    const inWork = new Bag<InWork>()
    /** Their channel is gone, and they have not ended yet. */
    const abandoned = new Set<InWork>()
    const maxAbandoned = concurrency * abandonedPerPlace
    /** Those that wait because too many are abandoned. */
    const held: Array<InWork> = []
    let delivered = 0
    let settled = 0
    let onEmpty: (() => void) | undefined
    let started = false

    const leave = (work: InWork) => {
      abandoned.delete(work)
      inWork.delete(work)
      if (inWork.size === 0) onEmpty?.()
      if (held.length > 0 && abandoned.size < maxAbandoned) begin(held.shift())
    }

    const take = (delivery: Delivery) => {
      const work = new InWork(delivery, delivered++)
      inWork.add(work)
      if (abandoned.size < maxAbandoned) begin(work)
      else held.push(work)
    }

    const begin = (work: InWork | undefined) => {
      if (work === undefined) return
      const fiber = fork(
        traced(
          work.delivery,
          Effect.suspend(() => options.work(work.delivery))
        )
      )
      work.fiber = fiber
      // the channel was lost while it took its first steps
      if (work.isVoid) fiber.interruptUnsafe()
      fiber.addObserver((exit) => {
        if (work.isVoid) leave(work)
        else if (Exit.isSuccess(exit)) settle(work, exit.value)
        else giveBack(work, exit.cause)
      })
    }

    const settle = (work: InWork, { settle, settled: told }: Verdict) => {
      settled++
      const asked = work.delivery.settle(settle)
      leave(work)
      if (asked !== "requested" || told === undefined) return
      try {
        told()
      } catch (defect) {
        fork(Effect.logError(`What follows a settlement of ${name} threw`, defect))
      }
    }

    /** It keeps its place meanwhile, so that an error that concerns all of them does not turn into a spin. */
    const giveBack = (work: InWork, cause: Cause.Cause<unknown>) => {
      const fiber = fork(
        Effect.andThen(
          failed(cause, `A message of queue ${queue} goes back to it`),
          Effect.raceFirst(Effect.sleep(Duration.seconds(idleRetrySeconds)), Deferred.await(stopping))
        )
      )
      work.fiber = fiber
      fiber.addObserver(() => {
        if (work.isVoid) leave(work)
        else settle(work, { settle: "requeue" })
      })
    }

    const lose = (works: ReadonlyArray<InWork>) => {
      for (const work of works) {
        work.isVoid = true
        inWork.delete(work)
        if (held.includes(work)) held.splice(held.indexOf(work), 1)
        else abandoned.add(work)
        work.fiber?.interruptUnsafe()
      }
      if (inWork.size === 0) onEmpty?.()
    }

    const failed = (cause: Cause.Cause<unknown>, consequence: string) =>
      Effect.suspend(() => {
        const error = HandlerFailure.ofCause(cause)
        options.onError?.(error, idleRetrySeconds)
        return Effect.logWarning(`${name}: ${consequence}`, error.exceptionType, Cause.squash(cause))
      })

    const emptied = Effect.callback<void>((resume) => {
      if (inWork.size === 0) {
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
    const drain = Effect.fnUntraced(function* (cancel: Effect.Effect<void>, takeNoMore: () => void) {
      const cancelling = yield* Effect.forkDetach(cancel, { startImmediately: true })
      yield* Effect.timeoutOption(Effect.andThen(Fiber.await(cancelling), emptied), stopWithin)
      takeNoMore()
      if (inWork.size > 0) {
        yield* Effect.logWarning(`${name} gives back what it could not end in time`, namesOf(inWork))
        lose(inOrder(inWork))
      }
      const fibers = Array.from(abandoned).flatMap(({ fiber }) => (fiber === undefined ? [] : [awaited(fiber)]))
      yield* Effect.timeoutOption(Effect.all(fibers, { concurrency: "unbounded", discard: true }), interruptWithin)
      if (abandoned.size > 0) {
        yield* Effect.logWarning(`${name} leaves handlers behind that cannot be interrupted`, namesOf(abandoned))
      }
    })

    const watchForStalls = Effect.gen(function* () {
      const before = settled
      const full = inWork.size >= concurrency
      yield* Effect.sleep(stalledAfter)
      if (!full || inWork.size < concurrency || settled !== before) return
      yield* Effect.logWarning(
        `${name} has settled nothing for ${Duration.format(stalledAfter)}, and all ${concurrency} places are taken`,
        namesOf(inWork)
      )
    })

    /** Ends when the subscription has to be made anew. */
    const watchForSilence = Effect.fnUntraced(function* (seconds: number) {
      let missing = 0
      let waiting = 0
      for (;;) {
        const before = delivered
        yield* Effect.sleep(Duration.seconds(seconds))
        if (delivered !== before || inWork.size > 0) {
          missing = 0
          waiting = 0
          continue
        }
        // the connection is being made anew, and the subscription with it
        const seen = yield* Effect.option(broker.inspect(queue))
        if (seen._tag === "None") continue
        const { consumers, messages } = seen.value._tag === "Some" ? seen.value.value : { consumers: 0, messages: 0 }
        missing = consumers === 0 ? missing + 1 : 0
        waiting = messages > 0 ? waiting + 1 : 0
        // once may be the moment between two channels
        if (missing > 1 || waiting > forgottenAfter) {
          return yield* Effect.logWarning(`${name} subscribes to queue ${queue} again: the broker does not serve it`)
        }
      }
    })

    const subscribed = Effect.gen(function* () {
      yield* options.prepare
      const isAsked = Effect.isEffect(options.arguments)
      const given = Effect.isEffect(options.arguments) ? yield* options.arguments : options.arguments
      const outlived = Deferred.makeUnsafe<void>()
      const { cancel } = yield* broker.consume({
        queue,
        prefetch: concurrency,
        ...(given && { arguments: given }),
        onDelivery: (delivery) => {
          if (!Deferred.isDoneUnsafe(outlived)) take(delivery)
        },
        onLost: (epoch) => lose(inOrder(inWork).filter(({ delivery }) => delivery.epoch === epoch)),
        // and not when the channel is lost: by now there is a broker to ask
        onResumed: () => {
          if (isAsked) Deferred.doneUnsafe(outlived, Exit.void)
        }
      })
      yield* Effect.addFinalizer(() => drain(cancel, () => Deferred.doneUnsafe(outlived, Exit.void)))
      if (!started) {
        started = true
        options.onStarted?.()
      }
      const ends = consumeTimeoutSeconds === null ? Effect.never : watchForSilence(consumeTimeoutSeconds)
      yield* Effect.raceAllFirst([ends, Deferred.await(outlived), Effect.forever(watchForStalls)])
    }).pipe(Effect.scoped)

    const again = subscribed.pipe(
      Effect.catchCause((cause) =>
        Effect.andThen(
          failed(cause, `queue ${queue} cannot be consumed from`),
          Effect.sleep(Duration.seconds(idleRetrySeconds))
        )
      ),
      Effect.forever
    )
    yield* Effect.raceFirst(Deferred.await(stopping), again)
  })

  return {
    run: Effect.suspend(() => {
      if (current !== undefined) return Effect.die(new Error(`${name} is running already.`))
      const running = { stopping: Deferred.makeUnsafe<void>(), ended: Deferred.makeUnsafe<void>() }
      current = running
      return Effect.ensuring(
        consuming(running.stopping),
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

const awaited = (fiber: Fiber.Fiber<unknown, unknown>): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const leave = fiber.addObserver(() => resume(Effect.void))
    return Effect.sync(leave)
  })

const maxNamed = 10

/** As they were delivered. */
const inOrder = (works: Iterable<InWork>): Array<InWork> =>
  Array.from(works).sort((one, other) => one.number - other.number)

/** By what a person can find them by. */
const namesOf = (works: Iterable<InWork>): string => {
  const all = inOrder(works)
  const named = all.slice(0, maxNamed).map(({ delivery }) => nameOf(delivery))
  const more = all.length - named.length
  return `${named.join(", ")}${more > 0 ? ` and ${more} more` : ""}`
}

const nameOf = ({ deliveryTag, properties }: Delivery): string => {
  const taskId = properties.headers?.["task_id"]
  return typeof taskId === "string" ? taskId : (properties.correlationId ?? `delivery ${deliveryTag}`)
}
