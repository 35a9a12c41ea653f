import { Cause, Deferred, Duration, Effect, Exit, Fiber, Scope } from "effect"
import type { Broker, Delivery, Fields } from "../../services/Broker.ts"
import { DenseSet, DenseSetItem } from "../../services/DenseSet.ts"
import type { QueueGate } from "../control/WorkControl.ts"
import * as HandlerFailure from "../retry/HandlerFailure.ts"
import * as DeliverySpan from "./DeliverySpan.ts"
import type { DeliveryVerdict } from "./DeliveryVerdict.ts"

export interface Options<R> {
  readonly name: string
  readonly queue: string
  readonly concurrency: number
  /** An effect is executed for each subscription. The consumer of a stream thereby resumes at its stored offset. */
  readonly arguments?: Fields | Effect.Effect<Fields, unknown, R>
  readonly prepare: Effect.Effect<unknown, unknown, R>
  /**
   * Processes a delivery. The loop settles the delivery after this effect has succeeded. The effect must publish all
   * resulting messages itself. A crash then duplicates messages, but never loses one. If the effect fails, the delivery
   * returns to its queue after a pause. If the channel is lost, the effect is interrupted.
   */
  readonly work: (delivery: Delivery) => Effect.Effect<DeliveryVerdict, unknown, R>
  readonly onStarted?: () => void
  /** Called if a subscription or the processing of a message fails. The loop then continues. */
  readonly onError?: (error: HandlerFailure.HandlerFailure, retryDelaySeconds: number) => void
  readonly consumeTimeoutSeconds?: number | null | undefined
  readonly idleRetrySeconds?: number | undefined
  readonly stopWithin?: Duration.Input | undefined
  readonly stalledAfter?: Duration.Input | undefined
  /** While the queue is paused, the loop takes no messages. Those in progress continue. */
  readonly gate?: QueueGate | undefined
  /** Called after each settlement. */
  readonly onSettled?: () => void
}

interface DeliveryLoop<R> {
  readonly run: Effect.Effect<void, never, R>
  readonly stop: Effect.Effect<void>
}

const interruptTimeout = "1 second"

/** Handlers may still run after their channel was lost. Their maximum number is this factor times `concurrency`. */
const maxAbandonedPerSlot = 4

/**
 * The maximum number of consecutive checks that find waiting messages but receive none. After one more such check, the
 * loop assumes that the broker has lost the subscription, and subscribes again.
 */
const maxSilentChecks = 30

/** One subscription. After a pause, it stays open until its deliveries in progress are settled. */
class Round {
  inFlight = 0
}

/** A delivery in progress. The loss of the channel interrupts its `fiber`. */
class InFlight extends DenseSetItem {
  readonly delivery: Delivery
  readonly sequence: number
  readonly round: Round
  fiber: Fiber.Fiber<unknown, unknown> | undefined
  isRevoked = false

  constructor(delivery: Delivery, number: number, round: Round) {
    super()
    this.delivery = delivery
    this.sequence = number
    this.round = round
  }
}

/** Subscribes to a queue, processes its deliveries and settles them. Continues after every failure. */
export const make = <R>(broker: Broker["Service"], options: Options<R>): DeliveryLoop<R> => {
  const { concurrency, consumeTimeoutSeconds = 1, gate, idleRetrySeconds = 2, name, queue } = options
  const stalledAfter = Duration.fromInputUnsafe(options.stalledAfter ?? "1 minute")
  const stopWithin = Duration.fromInputUnsafe(options.stopWithin ?? "10 seconds")
  let current: { readonly stopping: Deferred.Deferred<void>; readonly ended: Deferred.Deferred<void> } | undefined

  const consume = Effect.fnUntraced(function* (stopping: Deferred.Deferred<void>) {
    const fork = Effect.runForkWith(yield* Effect.context<R>())
    const withSpan = yield* DeliverySpan.make
    const inFlight = new DenseSet<InFlight>()
    const abandoned = new Set<InFlight>()
    const maxAbandoned = concurrency * maxAbandonedPerSlot
    const postponed: Array<InFlight> = []
    /** Subscriptions that a pause has ended, with deliveries in progress. */
    const retired = new Map<Round, Scope.Closeable>()
    let deliveredCount = 0
    let settledCount = 0
    let onEmpty: (() => void) | undefined
    let started = false

    const remove = (work: InFlight) => {
      if (work.index < 0) return
      inFlight.delete(work)
      work.round.inFlight--
      const scope = work.round.inFlight === 0 ? retired.get(work.round) : undefined
      if (scope === undefined) return
      retired.delete(work.round)
      fork(Scope.close(scope, Exit.void))
    }

    const finish = (work: InFlight) => {
      abandoned.delete(work)
      remove(work)
      if (inFlight.size === 0) onEmpty?.()
      if (postponed.length > 0 && abandoned.size < maxAbandoned) start(postponed.shift())
    }

    const accept = (delivery: Delivery, round: Round) => {
      const work = new InFlight(delivery, deliveredCount++, round)
      inFlight.add(work)
      round.inFlight++
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
      // The channel may be lost during the first, synchronous steps of the fiber, before `work.fiber` is set.
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
      if (settlement === "requested" && settle !== "requeue") options.onSettled?.()
      if (settlement !== "requested" || onSettled === undefined) return
      try {
        onSettled()
      } catch (defect) {
        fork(
          Effect.logError(
            `${name} has settled a delivery, but its observation is lost, because the observation callback threw an error`,
            defect
          )
        )
      }
    }

    /** Returns a delivery to its queue after a pause. The pause prevents a busy loop if every message fails. */
    const giveBack = (work: InFlight, cause: Cause.Cause<unknown>) => {
      const fiber = fork(
        Effect.andThen(
          reportFailure(
            cause,
            `a message could not be processed and returns to queue ${queue} in ${idleRetrySeconds} s`
          ),
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
        remove(work)
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

    /** Waits for the deliveries in progress and the cancellation. A frozen broker never confirms a cancellation. */
    const drain = Effect.fnUntraced(function* (cancel: Effect.Effect<void>, stopAccepting: () => void) {
      const cancelling = yield* Effect.forkDetach(cancel, { startImmediately: true })
      yield* Effect.timeoutOption(Effect.andThen(Fiber.await(cancelling), whenEmpty), stopWithin)
      stopAccepting()
      if (inFlight.size > 0) {
        yield* Effect.logWarning(
          `${name} is stopping and returns messages to queue ${queue}, because their handlers did not end within ${Duration.format(stopWithin)}`,
          namesOf(inFlight)
        )
        revoke(inOrder(inFlight))
      }
      const fibers = Array.from(abandoned).flatMap(({ fiber }) => (fiber === undefined ? [] : [awaitFiber(fiber)]))
      yield* Effect.timeoutOption(Effect.all(fibers, { concurrency: "unbounded", discard: true }), interruptTimeout)
      if (abandoned.size > 0) {
        yield* Effect.logWarning(
          `${name} has stopped, but some handlers cannot be interrupted and are still running. The broker will deliver their messages again`,
          namesOf(abandoned)
        )
      }
    })

    const watchForStalls = Effect.gen(function* () {
      const settledBefore = settledCount
      const full = inFlight.size >= concurrency
      yield* Effect.sleep(stalledAfter)
      if (!full || inFlight.size < concurrency || settledCount !== settledBefore) return
      yield* Effect.logWarning(
        `${name} receives no more messages, because it is processing ${concurrency} (its concurrency) and none has ended for ${Duration.format(stalledAfter)}`,
        namesOf(inFlight)
      )
    })

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
        // While the connection is being restored, the broker cannot answer. The subscription is restored with it.
        const inspection = yield* Effect.option(broker.inspect(queue))
        if (inspection._tag === "None") continue
        const { consumers, messages } =
          inspection.value._tag === "Some" ? inspection.value.value : { consumers: 0, messages: 0 }
        checksWithoutConsumer = consumers === 0 ? checksWithoutConsumer + 1 : 0
        checksWithBacklog = messages > 0 ? checksWithBacklog + 1 : 0
        // One check without a consumer proves nothing. The subscription may be moving from a lost channel to a new one.
        if (checksWithoutConsumer > 1 || checksWithBacklog > maxSilentChecks) {
          return yield* Effect.logWarning(
            `${name} subscribes to queue ${queue} again, because the broker no longer delivers its messages`
          )
        }
      }
    })

    const subscribe = Effect.suspend(() => {
      const scope = Scope.makeUnsafe()
      const round = new Round()
      let stopConsuming: Effect.Effect<void> = Effect.void

      const consumeRound = Effect.gen(function* () {
        yield* options.prepare
        if (gate !== undefined) yield* Effect.andThen(gate.known, gate.whenOpen)
        const hasEffectArguments = Effect.isEffect(options.arguments)
        const given = Effect.isEffect(options.arguments) ? yield* options.arguments : options.arguments
        const subscriptionEnded = Deferred.makeUnsafe<void>()
        const { cancel } = yield* broker.consume({
          queue,
          prefetch: concurrency,
          ...(given && { arguments: given }),
          onDelivery: (delivery) => {
            if (!Deferred.isDoneUnsafe(subscriptionEnded)) accept(delivery, round)
          },
          onLost: (epoch) =>
            revoke(inOrder(inFlight).filter((work) => work.round === round && work.delivery.epoch === epoch)),
          // After a reconnection, an effect must compute new subscription arguments. The loop therefore subscribes again.
          onResumed: () => {
            if (hasEffectArguments) Deferred.doneUnsafe(subscriptionEnded, Exit.void)
          }
        })
        stopConsuming = drain(cancel, () => Deferred.doneUnsafe(subscriptionEnded, Exit.void))
        if (!started) {
          started = true
          options.onStarted?.()
        }
        const watchSilence = consumeTimeoutSeconds === null ? Effect.never : watchForSilence(consumeTimeoutSeconds)
        const ended = Effect.raceAllFirst([
          watchSilence,
          Deferred.await(subscriptionEnded),
          Effect.forever(watchForStalls)
        ])
        if (gate === undefined) return yield* Effect.as(ended, false)
        const paused = Effect.as(gate.whenPaused, true)
        if (!(yield* Effect.raceFirst(Effect.as(ended, false), paused))) return false
        // A message that arrives before the broker confirms the cancellation is still processed.
        const cancelled = yield* Effect.timeoutOption(cancel, stopWithin)
        if (cancelled._tag === "None") return false
        yield* Effect.logInfo(
          `${name} takes no more messages of queue ${queue}, because the queue is paused. ${inFlight.size} are still in work`
        )
        return true
      })

      const leave = (isPaused: boolean, exit: Exit.Exit<unknown, unknown>) => {
        if (!isPaused) return Effect.andThen(stopConsuming, Scope.close(scope, exit))
        if (round.inFlight === 0) return Scope.close(scope, exit)
        return Effect.sync(() => retired.set(round, scope))
      }
      return consumeRound.pipe(
        Scope.provide(scope),
        Effect.onExit((exit) => leave(Exit.isSuccess(exit) && exit.value, exit))
      )
    })

    /** Ends the subscriptions that were open only for their deliveries in progress. */
    const closeRetired = Effect.gen(function* () {
      if (inFlight.size > 0) yield* drain(Effect.void, () => {})
      const scopes = [...retired.values()]
      retired.clear()
      yield* Effect.forEach(scopes, (scope) => Scope.close(scope, Exit.void), { discard: true })
    })

    const subscribeForever = subscribe.pipe(
      Effect.catchCause((cause) =>
        Effect.andThen(
          reportFailure(cause, `queue ${queue} cannot be consumed, the next attempt follows in ${idleRetrySeconds} s`),
          Effect.sleep(Duration.seconds(idleRetrySeconds))
        )
      ),
      Effect.forever
    )
    yield* Effect.ensuring(Effect.raceFirst(Deferred.await(stopping), subscribeForever), closeRetired)
  })

  return {
    run: Effect.suspend(() => {
      if (current !== undefined) return Effect.die(new Error(`${name} is running already: call run only once.`))
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

const inOrder = (works: Iterable<InFlight>): Array<InFlight> =>
  Array.from(works).sort((one, other) => one.sequence - other.sequence)

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
