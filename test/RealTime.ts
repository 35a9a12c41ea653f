import { Clock, Effect, Layer } from "effect"

const clock = Clock.Clock.defaultValue()

/**
 * For a door with a driver of its own inside a test on the test clock: its background work would otherwise run once for
 * every interval that the test jumps over.
 */
export const layer = <A, E, R>(door: Layer.Layer<A, E, R>): Layer.Layer<A, E, R> =>
  Layer.provide(door, Layer.succeed(Clock.Clock, clock))

export const effect: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R> = Effect.provideService(
  Clock.Clock,
  clock
)
