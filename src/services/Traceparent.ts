import type { Tracer } from "effect"

/** Returns the `traceparent` header that makes the receiver's span a child of `span`. */
export const of = ({ sampled, spanId, traceId }: Tracer.AnySpan): string =>
  `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`
