import { Effect, Layer, SubscriptionRef } from "effect"
import { Lifecycle } from "../../src/process/Lifecycle.ts"
import type { Settings } from "../Environment.ts"

export const lifecycle = Lifecycle.layer("starting")

/**
 * Sets the phase to `serving` when every listener is open, and to `draining` on shutdown. During the drain delay, load
 * balancers notice the change while requests are still served.
 */
export const layer = ({ drainDelaySeconds }: Settings) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const lifecycle = yield* Lifecycle
      yield* SubscriptionRef.set(lifecycle, "serving")
      yield* Effect.addFinalizer(() =>
        Effect.logInfo(
          "The process is draining: readiness is false, and the listeners close after the drain delay"
        ).pipe(
          Effect.andThen(SubscriptionRef.set(lifecycle, "draining")),
          Effect.andThen(Effect.sleep(`${drainDelaySeconds} seconds`))
        )
      )
    })
  )
