import { Effect, Fiber, Option, Tracer } from "effect"
import * as Headers from "effect/http/Headers"
import * as HttpTraceContext from "effect/http/HttpTraceContext"
import type { Fields } from "../../services/Broker.ts"
import * as Traceparent from "../../services/Traceparent.ts"

const header = "traceparent"

/** Returns whether spans are exported. Effect's native tracer does not export spans. */
export const isTraced: Effect.Effect<boolean> = Effect.map(Effect.tracer, (tracer) => tracer !== Tracer.nativeTracer)

export const ofHeaders = (headers: Fields = {}): Tracer.ExternalSpan | undefined => {
  const { [header]: traceparent } = headers
  if (typeof traceparent !== "string") return undefined
  return Option.getOrUndefined(HttpTraceContext.w3c(Headers.fromInput({ traceparent })))
}

export const toHeaders = (span: Tracer.AnySpan): Fields => ({ [header]: Traceparent.of(span) })

/**
 * Returns the headers by which a request continues the trace of a handler. Effect's `HttpClient` sends them by itself;
 * other clients need them. There are none outside of a trace.
 */
export const requestHeaders: Effect.Effect<{ readonly traceparent?: string }> = Effect.map(isTraced, (isTraced) => {
  const span = isTraced ? Fiber.getCurrent()?.cache.span : undefined
  return span === undefined ? {} : { traceparent: Traceparent.of(span) }
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
