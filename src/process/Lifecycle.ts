import { Context, Layer, SubscriptionRef } from "effect"

/** `starting`: until every listener is open. `draining`: from the first signal to end. */
export type Phase = "starting" | "serving" | "draining"

/**
 * Whether the process takes work. Readiness turns false before the listeners close, so that load balancers leave first,
 * and true only when the last of them is open, so that none comes too early.
 */
export class Lifecycle extends Context.Service<Lifecycle, SubscriptionRef.SubscriptionRef<Phase>>()("svc/Lifecycle") {
  static readonly layer = (phase: Phase) => Layer.effect(Lifecycle, SubscriptionRef.make(phase))
}
