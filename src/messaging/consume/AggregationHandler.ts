import type { Effect } from "effect"
import type { StatusEvent } from "../envelope/StatusEvent.ts"
import type { AggregationContext } from "./AggregationContext.ts"

/**
 * The handler of an aggregation worker. Its success value is ignored. A failure or defect fails the event. With a retry
 * policy, the event is then retried, unless the error has `retryable: false`. `R` is the type of the services that the
 * handler needs.
 */
export interface AggregationHandler<R = never> {
  readonly handle: (event: StatusEvent, context: AggregationContext) => Effect.Effect<unknown, unknown, R>
}

export const make = <R>(
  handle: (event: StatusEvent, context: AggregationContext) => Effect.Effect<unknown, unknown, R>
): AggregationHandler<R> => ({ handle })
