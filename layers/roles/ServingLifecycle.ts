import { Effect, Layer, SubscriptionRef } from "effect"
import { Lifecycle } from "../../src/process/Lifecycle.ts"
import type { Settings } from "../Environment.ts"

/** The process starts. */
export const lifecycle = Lifecycle.layer("starting")

/**
 * Built last, so closed first. Every listener is open by then, and not before then does the process say that it is
 * ready. At the end load balancers see it before anything else happens: what they send until they have looked is still
 * served, if the delay is as long as that takes.
 */
export const layer = ({ drainDelaySeconds }: Settings) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const lifecycle = yield* Lifecycle
      yield* SubscriptionRef.set(lifecycle, "serving")
      yield* Effect.addFinalizer(() =>
        Effect.logInfo("draining").pipe(
          Effect.andThen(SubscriptionRef.set(lifecycle, "draining")),
          Effect.andThen(Effect.sleep(`${drainDelaySeconds} seconds`))
        )
      )
    })
  )
