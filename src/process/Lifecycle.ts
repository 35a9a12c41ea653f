import { Context, Layer, SubscriptionRef } from "effect"

/** `starting` until every listener is open; `draining` after the first signal to stop. */
export type Phase = "starting" | "serving" | "draining"

/** The phase becomes `serving` after the last listener opens, and `draining` before any listener closes. */
export class Lifecycle extends Context.Service<Lifecycle, SubscriptionRef.SubscriptionRef<Phase>>()("svc/Lifecycle") {
  static readonly layer = (phase: Phase) => Layer.effect(Lifecycle, SubscriptionRef.make(phase))
}
