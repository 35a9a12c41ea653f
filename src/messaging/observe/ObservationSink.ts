import { Cause, Clock, Effect, Fiber, Queue, type Scope } from "effect"
import * as Timestamp from "../envelope/Timestamp.ts"
import * as TraceContext from "../envelope/TraceContext.ts"
import type * as Observation from "./Observation.ts"

/** Told of everything that a consumer observes, in its order. It is called between messages: plain, and quick. */
export type ObservationSink = (observation: Observation.Observed) => void

type MakeObservation = (at: Timestamp.Timestamp) => Observation.Observed

/** `observation`: asked for only where somebody listens. */
export interface Observe {
  (observation: MakeObservation): void
  /** For what is observed when the fiber has ended that it belongs to, and its trace with it. */
  readonly deferred: (observation: MakeObservation) => () => void
}

/** What a sink throws reaches nobody, least of all a handler. */
export const makeObserve = (sink: ObservationSink | undefined): Effect.Effect<Observe> =>
  Effect.gen(function* () {
    if (sink === undefined) return silent
    const clock = yield* Clock.Clock
    const traceIds = yield* TraceContext.current
    const emit = (observation: MakeObservation, trace: TraceContext.TraceIds | undefined) => {
      try {
        sink({ ...observation(Timestamp.ofMillis(clock.currentTimeMillisUnsafe())), ...trace })
      } catch {
        // by the promise above
      }
    }
    return Object.assign((observation: MakeObservation) => emit(observation, traceIds()), {
      deferred: (observation: MakeObservation) => {
        const trace = traceIds()
        return () => emit(observation, trace)
      }
    })
  })

const nothing = () => {}
const silent: Observe = Object.assign(nothing, { deferred: () => nothing })

/** Observations that wait for a slow sink; more are dropped. */
const capacity = 10_000

/** How many of them are written at once. */
const writeConcurrency = 64

/** For those that still wait when the scope closes. */
const flushTimeout = "2 seconds"

/**
 * A sink that takes its time, such as a store: observations wait for it in a bounded queue, beside the handlers. Those
 * that find no room, and those that it fails for, are counted and reported; nobody waits for them.
 */
export const queued = <E>(
  write: (observation: Observation.Observed) => Effect.Effect<unknown, E>
): Effect.Effect<ObservationSink, never, Scope.Scope> =>
  Effect.gen(function* () {
    const queue = yield* Queue.dropping<Observation.Observed, Cause.Done>(capacity)
    let lostCount = 0
    const one = (observation: Observation.Observed) =>
      Effect.catchCause(write(observation), (cause) =>
        Cause.hasInterruptsOnly(cause) ? Effect.interrupt : Effect.sync(() => lostCount++)
      )
    const report = Effect.suspend(() => {
      if (lostCount === 0) return Effect.void
      const count = lostCount
      lostCount = 0
      return Effect.logWarning(`${count} observations were lost: their sink failed, or was too slow`)
    })
    const writing = Queue.takeAll(queue).pipe(
      Effect.flatMap((observations) =>
        Effect.forEach(observations, one, { concurrency: writeConcurrency, discard: true })
      ),
      Effect.andThen(report),
      Effect.forever,
      Effect.ignore
    )
    const writer = yield* Effect.forkScoped(writing)
    yield* Effect.addFinalizer(() =>
      Queue.end(queue).pipe(
        Effect.andThen(Effect.timeoutOption(Fiber.await(writer), flushTimeout)),
        Effect.andThen(report)
      )
    )
    return (observation) => {
      if (!Queue.offerUnsafe(queue, observation)) lostCount++
    }
  })
