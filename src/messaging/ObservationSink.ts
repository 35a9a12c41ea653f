import { Cause, Clock, Effect, Fiber, Queue, type Scope } from "effect"
import type * as Observation from "./Observation.ts"
import * as Timestamp from "./Timestamp.ts"

/** Told of everything that a consumer observes, in its order. It is called between messages: plain, and quick. */
export type ObservationSink = (observation: Observation.Observed) => void

/** `observation`: asked for only where somebody listens. */
export type Observe = (observation: (at: Timestamp.Timestamp) => Observation.Observed) => void

/** What a sink throws reaches nobody, least of all a handler. */
export const observing = (sink: ObservationSink | undefined): Effect.Effect<Observe> =>
  Effect.map(Clock.Clock, (clock) => (observation) => {
    if (sink === undefined) return
    try {
      sink(observation(Timestamp.ofMillis(clock.currentTimeMillisUnsafe())))
    } catch {
      // by the promise above
    }
  })

/** Observations that wait for a slow sink; more are dropped. */
const capacity = 10_000

/** How many of them are written at once. */
const atOnce = 64

/** For those that still wait when the scope closes. */
const flushWithin = "2 seconds"

/**
 * A sink that takes its time, such as a store: observations wait for it in a bounded queue, beside the handlers. Those
 * that find no room, and those that it fails for, are counted and reported; nobody waits for them.
 */
export const queued = <E>(
  write: (observation: Observation.Observed) => Effect.Effect<unknown, E>
): Effect.Effect<ObservationSink, never, Scope.Scope> =>
  Effect.gen(function* () {
    const queue = yield* Queue.dropping<Observation.Observed, Cause.Done>(capacity)
    let lost = 0
    const one = (observation: Observation.Observed) =>
      Effect.catchCause(write(observation), (cause) =>
        Cause.hasInterruptsOnly(cause) ? Effect.interrupt : Effect.sync(() => lost++)
      )
    const report = Effect.suspend(() => {
      if (lost === 0) return Effect.void
      const count = lost
      lost = 0
      return Effect.logWarning(`${count} observations were lost: their sink failed, or was too slow`)
    })
    const writing = Queue.takeAll(queue).pipe(
      Effect.flatMap((observations) => Effect.forEach(observations, one, { concurrency: atOnce, discard: true })),
      Effect.andThen(report),
      Effect.forever,
      Effect.ignore
    )
    const writer = yield* Effect.forkScoped(writing)
    yield* Effect.addFinalizer(() =>
      Queue.end(queue).pipe(
        Effect.andThen(Effect.timeoutOption(Fiber.await(writer), flushWithin)),
        Effect.andThen(report)
      )
    )
    return (observation) => {
      if (!Queue.offerUnsafe(queue, observation)) lost++
    }
  })
