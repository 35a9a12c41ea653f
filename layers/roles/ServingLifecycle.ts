import { Effect, Layer, SubscriptionRef } from "effect"
import { Lifecycle } from "../../src/process/Lifecycle.ts"
import type { Settings } from "../Environment.ts"

export const lifecycle = Lifecycle.layer("starting")

/**
 * Sets the phase to `serving` when every listener is open, and to `draining` on shutdown, unless the process is
 * retiring. During the drain delay, load balancers notice the change while requests are still served.
 */
export const layer = ({ drainDelaySeconds }: Settings) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const lifecycle = yield* Lifecycle
      yield* SubscriptionRef.set(lifecycle, "serving")
      const drain = Effect.logInfo(
        "The process is draining: readiness is false, and the listeners close after the drain delay"
      ).pipe(
        Effect.andThen(SubscriptionRef.set(lifecycle, "draining")),
        Effect.andThen(Effect.sleep(`${drainDelaySeconds} seconds`))
      )
      yield* Effect.addFinalizer(() =>
        Effect.flatMap(SubscriptionRef.get(lifecycle), (phase) => (phase === "retiring" ? retire : drain))
      )
    })
  )

/** Load balancers need not notice anything, because another process has taken over the listeners. */
const retire = Effect.logInfo("The process is retiring: another one serves new connections")
