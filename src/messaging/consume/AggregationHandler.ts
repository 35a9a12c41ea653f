import type { Effect } from "effect"
import type { StatusEvent } from "../envelope/StatusEvent.ts"
import type { AggregationContext } from "./AggregationContext.ts"

/**
 * The handler of an aggregation worker. Its success value is ignored. Any failure or defect fails the event, which is
 * retried unless the error has a member `retryable` that is `false`. `R` is the type of the services that the handler
 * needs.
 */
export interface AggregationHandler<R = never> {
  readonly handle: (event: StatusEvent, context: AggregationContext) => Effect.Effect<unknown, unknown, R>
}

export const make = <R>(
  handle: (event: StatusEvent, context: AggregationContext) => Effect.Effect<unknown, unknown, R>
): AggregationHandler<R> => ({ handle })
