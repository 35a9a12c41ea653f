import { Effect, Fiber, Option, Tracer } from "effect"
import * as Headers from "effect/http/Headers"
import * as HttpTraceContext from "effect/http/HttpTraceContext"
import type { Fields } from "../../services/Broker.ts"

const header = "traceparent"

/** Returns whether spans are exported. Effect's native tracer does not export spans. */
export const isTraced: Effect.Effect<boolean> = Effect.map(Effect.tracer, (tracer) => tracer !== Tracer.nativeTracer)

export const ofHeaders = (headers: Fields = {}): Tracer.ExternalSpan | undefined => {
  const { [header]: traceparent } = headers
  if (typeof traceparent !== "string") return undefined
  return Option.getOrUndefined(HttpTraceContext.w3c(Headers.fromInput({ traceparent })))
}

export const toHeaders = ({ sampled, spanId, traceId }: Tracer.AnySpan): Fields => ({
  [header]: `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`
})

export interface TraceIds {
  readonly trace_id: string
  readonly span_id: string
}

/** Creates a function that returns the trace and span id of the calling fiber. A span must be sampled and exported. */
export const current: Effect.Effect<() => TraceIds | undefined> = Effect.map(isTraced, (isTraced) => {
  if (!isTraced) return () => undefined
  return () => {
    const span = Fiber.getCurrent()?.cache.span
    return span?.sampled === true ? { trace_id: span.traceId, span_id: span.spanId } : undefined
  }
})
