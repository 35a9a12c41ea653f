import { Cause, Clock, Context, Effect, Fiber, Queue, type Scope } from "effect"
import * as Timestamp from "../envelope/Timestamp.ts"
import * as TraceContext from "../envelope/TraceContext.ts"
import type * as Observation from "./Observation.ts"

/** Receives observations in order. Runs synchronously during message processing and must return at once. */
export type ObservationSink = (observation: Observation.Observed) => void

/** The sink of consumers whose options name none. The roles provide their store here. Default: none. */
export const DefaultObservationSink = Context.Reference<ObservationSink | undefined>(
  "svc/messaging/DefaultObservationSink",
  { defaultValue: () => undefined }
)

type MakeObservation = (at: Timestamp.Timestamp) => Observation.Observed

/** Creates an observation and passes it to the sink. Without a sink, no observation is created. */
export interface Observe {
  (observation: MakeObservation): void
  /** Captures the current trace ids. The returned function emits the observation later, with these trace ids. */
  readonly deferred: (observation: MakeObservation) => () => void
}

/** Exceptions of the sink are ignored, so that they do not fail a message. */
export const makeObserve = (sink: ObservationSink | undefined): Effect.Effect<Observe> =>
  Effect.gen(function* () {
    if (sink === undefined) return silent
    const clock = yield* Clock.Clock
    const traceIds = yield* TraceContext.current
    const emit = (observation: MakeObservation, trace: TraceContext.TraceIds | undefined) => {
      try {
        sink({ ...observation(Timestamp.ofMillis(clock.currentTimeMillisUnsafe())), ...trace })
      } catch {}
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

const capacity = 10_000

const writeConcurrency = 64

const flushTimeout = "2 seconds"

/**
 * Creates a sink for a slow destination, such as a store. At most 10,000 observations wait in memory. They are written
 * in the background, 64 at a time, without delaying handlers. Observations are lost if the memory is full or `write`
 * fails. A warning reports their number. When the scope closes, the queue has 2 seconds to drain.
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
      return Effect.logWarning(
        `${count} observations were not stored, because their store failed or was too slow: execution graphs have gaps`
      )
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
