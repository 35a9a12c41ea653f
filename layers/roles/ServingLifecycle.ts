import { Effect, Layer, SubscriptionRef } from "effect"
import { Lifecycle } from "../../src/process/Lifecycle.ts"
import type { Settings } from "../Environment.ts"

/** The lifecycle, in its first phase. */
export const lifecycle = Lifecycle.layer("starting")

/**
 * Reports the process as ready, and later as draining. Built last, when every listener is open, and closed first.
 * Requests are still served during the drain delay, in which load balancers notice the change.
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
