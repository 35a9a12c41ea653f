import { Clock, Context, Effect, Exit, Option, type Scope, Tracer } from "effect"
import { Headers as HeaderMap, HttpTraceContext } from "effect/http"
import { toDollars } from "../../policy/Price.ts"
import type { RoutedRequest } from "../../policy/Routing.ts"
import type { Provider } from "../../policy/routes/CanonicalRoute.ts"
import type { UpstreamBase } from "../../policy/routes/UpstreamBase.ts"
import * as CallbackMetrics from "../../process/CallbackMetrics.ts"
import { GenAiConventions } from "../../process/SemanticConventions.ts"
import * as Traceparent from "../../services/Traceparent.ts"
import type { Request } from "../request/Request.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import type { ResponseReader } from "../usage/ResponseReader.ts"
import { pathOf } from "./AccessLog.ts"
import { GenAiMetrics } from "./GenAiMetrics.ts"
import { type CallResult, errorTypeOf, ModelCall, type ModelRequest, serverOf } from "./ModelCall.ts"
import type { RequestOutcome } from "./RequestOutcome.ts"

export interface Span {
  readonly traceId: string | undefined
  /** False if no span is exported for the request. What only spans tell is then not read. */
  readonly isRecorded: boolean
  /** Starts a child span for a step of the gateway. */
  readonly startPhase: (name: string) => Phase
  /** Starts a child span for one exchange with an upstream. Attempts of one request are siblings. */
  readonly startExchange: (call: UpstreamCall) => Exchange
  readonly end: (outcome: RequestOutcome, key: KeyRecord | undefined) => void
}

export interface Phase {
  /** Makes the spans of an effect children of the phase. */
  readonly run: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
  readonly end: () => void
}

export interface UpstreamCall {
  readonly base: UpstreamBase
  readonly provider: Provider
  /** Returns what is asked of a model. Returns `undefined` if the request calls no model. Called only with a tracer. */
  readonly model?: () => ModelRequest | undefined
}

export interface Exchange {
  /** The `traceparent` header to send to the upstream. Without a tracer it is the client's own header. */
  readonly traceparent: string | undefined
  /** Reads the response for the span. `undefined` if nothing of it is exported. */
  readonly reader: ResponseReader | undefined
  /** Called when the response is complete, if something else happens before `end`. */
  readonly received: () => void
  readonly end: (result: CallResult) => void
}

export type StartSpan = (request: Request, target: RoutedRequest | undefined) => Span

const noop = () => {}
const noPhase: Phase = { run: (effect) => effect, end: noop }
const untracedExchange = (traceparent: string | undefined): Exchange => ({
  traceparent,
  reader: undefined,
  received: noop,
  end: noop
})
const untracedSpan = ({ traceparent }: Request): Span => ({
  traceId: undefined,
  isRecorded: false,
  startPhase: () => noPhase,
  startExchange: () => untracedExchange(traceparent),
  end: noop
})

/**
 * Creates a span for each request as a child of the client's span. The span omits query and headers, because they may
 * hold credentials. Without a tracer no span is created, and no metric of the GenAI conventions.
 */
export const make: Effect.Effect<StartSpan, never, Scope.Scope> = Effect.gen(function* () {
  const tracer = yield* Effect.tracer
  if (tracer === Tracer.nativeTracer) return untracedSpan
  const clock = yield* Clock.Clock
  const version = yield* GenAiConventions
  const metrics = new GenAiMetrics(yield* CallbackMetrics.make, version)
  const now = () => clock.currentTimeMillisUnsafe()
  const nanos = () => clock.currentTimeNanosUnsafe()

  /** `Effect.makeSpan` needs a fiber, which costs several times as much as the span. */
  const open = (name: string, kind: Tracer.SpanKind, parent: Option.Option<Tracer.AnySpan>): Tracer.Span =>
    tracer.span({
      name,
      kind,
      parent,
      annotations: Context.empty(),
      links: [],
      startTime: nanos(),
      root: false,
      sampled: true
    })

  const startPhase = (parent: Tracer.Span, name: string): Phase => {
    const phase = open(name, "internal", Option.some(parent))
    return {
      run: (effect) => Effect.provideService(effect, Tracer.ParentSpan, phase),
      end: () => phase.end(nanos(), Exit.void)
    }
  }

  const startExchange = (parent: Tracer.Span, route: string, method: string, upstream: UpstreamCall): Exchange => {
    const { base, provider } = upstream
    const model = upstream.model?.()
    if (model === undefined && !parent.sampled) return untracedExchange(Traceparent.of(parent))
    const call = model && new ModelCall(model, base, { version, metrics, now, isRecorded: parent.sampled })
    const span = parent.sampled
      ? open(call?.spanName ?? `${method} ${route}`, "client", Option.some(parent))
      : undefined
    let endedAt: bigint | undefined
    const received = () => {
      call?.received()
      if (span !== undefined) endedAt ??= nanos()
    }
    if (span !== undefined) {
      span.attribute("http.request.method", method)
      span.attribute("gateway.provider", provider)
      const { address, port } = serverOf(base)
      span.attribute("server.address", address)
      span.attribute("server.port", port)
    }
    return {
      traceparent: Traceparent.of(span ?? parent),
      reader: call?.response,
      received,
      end: (result) => {
        received()
        call?.end(result)
        if (span === undefined) return
        const { status, withheldStatus = status } = result
        if (withheldStatus !== undefined) span.attribute("http.response.status_code", withheldStatus)
        for (const [name, value] of call?.attributes(result) ?? []) span.attribute(name, value)
        const errorType = errorTypeOf(result)
        if (errorType !== undefined) span.attribute("error.type", errorType)
        span.end(endedAt ?? nanos(), exitOf(errorType))
      }
    }
  }

  const startSpan: StartSpan = (request, target) => {
    const { requestId, traceparent, wire } = request
    const { method } = wire
    const route = target?.route ?? "unrouted"
    const parent =
      traceparent === undefined ? Option.none() : HttpTraceContext.w3c(HeaderMap.fromInput({ traceparent }))
    const span = open(`${method} ${route}`, "server", parent)
    const isRecorded = span.sampled
    if (isRecorded) {
      span.attribute("http.request.method", method)
      span.attribute("http.route", route)
      span.attribute("url.path", pathOf(wire.target))
      span.attribute("gateway.request_id", requestId)
      span.attribute("gateway.route", route)
      span.attribute("gateway.provider", target?.provider ?? "none")
    }
    return {
      traceId: span.traceId,
      isRecorded,
      startPhase: (name) => (isRecorded ? startPhase(span, name) : noPhase),
      startExchange: (upstream) => startExchange(span, route, method, upstream),
      end: (outcome, key) => {
        if (!isRecorded) return
        for (const [name, value] of Object.entries(attributesOf(outcome, key))) {
          if (value !== undefined) span.attribute(name, value)
        }
        const { error, status } = outcome
        // A client error (4xx) does not mark the span as failed.
        span.end(nanos(), exitOf(status >= 500 ? (error?.code ?? String(status)) : undefined))
      }
    }
  }
  return startSpan
})

const exitOf = (errorType: string | undefined): Exit.Exit<void, string> =>
  errorType === undefined ? Exit.void : Exit.fail(errorType)

/** The tokens are those that were billed, which may be estimated. The spans of exchanges have those that were reported. */
const attributesOf = (
  { bill, error, fallback, model, status, streamed }: RequestOutcome,
  key: KeyRecord | undefined
) => ({
  "http.response.status_code": status,
  "error.type": error?.code ?? (status >= 400 ? String(status) : undefined),
  "gateway.model": model,
  "gateway.input_tokens": bill.usage.input,
  "gateway.output_tokens": bill.usage.output,
  "gateway.cost_usd": bill.costNanos === null ? undefined : toDollars(bill.costNanos),
  "gateway.key_prefix": key?.prefix,
  "gateway.project": key && Option.getOrUndefined(key.projectName),
  "gateway.streamed": streamed || undefined,
  "gateway.fallback_reason": fallback?.reason
})
