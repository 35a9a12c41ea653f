import type { Effect } from "effect"
import type { StatusEvent } from "../envelope/StatusEvent.ts"
import type { AggregationContext } from "./AggregationContext.ts"

/**
 * What an aggregation worker runs. It succeeds with anything; whatever it fails or dies with is a failure of the event,
 * which is tried again unless the error has a member `retryable` that is `false`. `R`: the services that it needs.
 */
export interface AggregationHandler<R = never> {
  readonly handle: (event: StatusEvent, context: AggregationContext) => Effect.Effect<unknown, unknown, R>
}

export const make = <R>(
  handle: (event: StatusEvent, context: AggregationContext) => Effect.Effect<unknown, unknown, R>
): AggregationHandler<R> => ({ handle })
