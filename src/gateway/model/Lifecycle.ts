import { Context, Effect, Layer, SubscriptionRef } from "effect"

/**
 * Whether the process takes work. Readiness turns false before the listeners close, so that load balancers leave first.
 */
export class Lifecycle extends Context.Service<Lifecycle, SubscriptionRef.SubscriptionRef<"serving" | "draining">>()(
  "svc/Lifecycle"
) {
  static readonly layer = Layer.effect(Lifecycle, SubscriptionRef.make<"serving" | "draining">("serving"))

  static readonly serving = Effect.flatMap(Lifecycle, (state) =>
    Effect.map(SubscriptionRef.get(state), (now) => now === "serving")
  )
}
