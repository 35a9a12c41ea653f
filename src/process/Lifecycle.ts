import { Context, Layer, SubscriptionRef } from "effect"

/** The process is `starting` until every listener is open, and `draining` after the first signal to stop. */
export type Phase = "starting" | "serving" | "draining"

/** The phase becomes `draining` before any listener closes. */
export class Lifecycle extends Context.Service<Lifecycle, SubscriptionRef.SubscriptionRef<Phase>>()("svc/Lifecycle") {
  static readonly layer = (phase: Phase) => Layer.effect(Lifecycle, SubscriptionRef.make(phase))
}
