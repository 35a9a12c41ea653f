import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import type { Observed } from "../../src/messaging/observe/Observation.ts"
import { BrokerClient, type ClientOptions } from "../../src/messaging/publish/BrokerClient.ts"

/** A client over a broker within the process, and the broker beside it. */
export const desk = (options: ClientOptions) =>
  BrokerClient.layer(options).pipe(
    Layer.provideMerge(BrokerMemory.layerConnection()),
    Layer.provideMerge(BrokerMemory.layerServer())
  )

interface Consumer<R> {
  readonly run: Effect.Effect<void, never, R>
  readonly stop: Effect.Effect<void>
}

/** Runs a consumer beside the test, until the test ends. */
export const atWork = Effect.fnUntraced(function* <R, C, E, R2>(made: Effect.Effect<C & Consumer<R>, E, R2>) {
  const consumer = yield* made
  yield* Effect.forkScoped(consumer.run)
  // what hangs on purpose must not hold up the end of the test, where no time passes
  yield* Effect.addFinalizer(() => Effect.andThen(Effect.forkChild(consumer.stop), TestClock.adjust("1 minute")))
  yield* settleDown
  return consumer
})

/** Lets everything happen that waits for no time to pass. */
export const settleDown = Effect.repeat(TestClock.adjust(0), { times: 8 })

/** Lets time pass, and everything happen that waited for it. */
export const pass = (duration: Parameters<typeof TestClock.adjust>[0]) =>
  Effect.andThen(TestClock.adjust(duration), settleDown)

/** A sink that keeps what it is told. */
export const observer = () => {
  const all: Array<Observed> = []
  return {
    sink: (observation: Observed) => void all.push(observation),
    types: () => all.map(({ event_type }) => event_type),
    all: (): ReadonlyArray<Observed> => all,
    /** Without the members that every observation has. */
    of: (type: Observed["event_type"]) =>
      all
        .filter(({ event_type }) => event_type === type)
        .map(({ component: _, event_type: __, timestamp: ___, ...fields }) => fields)
  }
}
