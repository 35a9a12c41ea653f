import { Context, Layer, SubscriptionRef } from "effect"

/**
 * The process is `starting` until every listener is open, and `draining` after the first signal to stop. It is
 * `retiring` instead if another process takes its place: that process keeps the listeners open.
 */
export type Phase = "starting" | "serving" | "draining" | "retiring"

/** The phase becomes `draining` or `retiring` before any listener closes. */
export class Lifecycle extends Context.Service<Lifecycle, SubscriptionRef.SubscriptionRef<Phase>>()("svc/Lifecycle") {
  static readonly layer = (phase: Phase) => Layer.effect(Lifecycle, SubscriptionRef.make(phase))
}
