import { Context, Layer, SubscriptionRef } from "effect"

/** `starting` until every listener is open; `draining` from the first signal on. */
export type Phase = "starting" | "serving" | "draining"

/** Readiness becomes true after the last listener opens, and false before the listeners close. */
export class Lifecycle extends Context.Service<Lifecycle, SubscriptionRef.SubscriptionRef<Phase>>()("svc/Lifecycle") {
  static readonly layer = (phase: Phase) => Layer.effect(Lifecycle, SubscriptionRef.make(phase))
}
