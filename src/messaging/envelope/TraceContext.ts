import { Effect, Fiber, Option, Tracer } from "effect"
import * as Headers from "effect/http/Headers"
import * as HttpTraceContext from "effect/http/HttpTraceContext"
import type { Fields } from "../../services/Broker.ts"

/** The header in which a message names the span that it was published in: W3C Trace Context. */
const header = "traceparent"

/** Nobody collects the spans of the native tracer. */
export const isTraced: Effect.Effect<boolean> = Effect.map(Effect.tracer, (tracer) => tracer !== Tracer.nativeTracer)

/** The span that a message was published in; none where it names none, or names it otherwise than W3C says. */
export const ofHeaders = (headers: Fields = {}): Tracer.ExternalSpan | undefined => {
  const { [header]: traceparent } = headers
  if (typeof traceparent !== "string") return undefined
  return Option.getOrUndefined(HttpTraceContext.w3c(Headers.fromInput({ traceparent })))
}

export const toHeaders = ({ sampled, spanId, traceId }: Tracer.AnySpan): Fields => ({
  [header]: `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`
})

/** What a status and an observation say of the span that they come from, beside everything else. */
export interface TraceIds {
  readonly trace_id: string
  readonly span_id: string
}

/** Of the span that the asking fiber is in, where there is a tracer and the span is sampled. */
export const current: Effect.Effect<() => TraceIds | undefined> = Effect.map(isTraced, (isTraced) => {
  if (!isTraced) return () => undefined
  return () => {
    const span = Fiber.getCurrent()?.cache.span
    return span?.sampled === true ? { trace_id: span.traceId, span_id: span.spanId } : undefined
  }
})
