import { Clock, Effect, Option, type Scope, Tracer } from "effect"
import { Headers as HeaderMap, HttpTraceContext } from "effect/http"
import { toDollars } from "../../policy/Price.ts"
import type { RoutedRequest } from "../../policy/Routing.ts"
import type { Provider } from "../../policy/routes/CanonicalRoute.ts"
import type { UpstreamBase } from "../../policy/routes/UpstreamBase.ts"
import * as CallbackMetrics from "../../process/CallbackMetrics.ts"
import { GenAiConventions } from "../../process/SemanticConventions.ts"
import type { Request } from "../request/Request.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import { pathOf } from "./AccessLog.ts"
import * as ExchangeSpan from "./ExchangeSpan.ts"
import { GenAiMetrics } from "./GenAiMetrics.ts"
import { ModelCall, type ModelCallServices, type ModelRequest } from "./ModelCall.ts"
import type { RequestOutcome } from "./RequestOutcome.ts"
import { Spans } from "./Spans.ts"

export type { Exchange } from "./ExchangeSpan.ts"

export interface Span {
  readonly traceId: string | undefined
  /** False if no span is exported for the request. What only spans tell is then not read. */
  readonly isRecorded: boolean
  /** Starts a child span for a step of the gateway. */
  readonly startPhase: (name: string) => Phase
  /** Starts a child span for one exchange with an upstream. Attempts of one request are siblings. */
  readonly startExchange: (call: UpstreamCall) => ExchangeSpan.Exchange
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

export type StartSpan = (request: Request, target: RoutedRequest | undefined) => Span

const noPhase: Phase = { run: (effect) => effect, end: () => {} }
const untracedSpan = ({ traceparent }: Request): Span => ({
  traceId: undefined,
  isRecorded: false,
  startPhase: () => noPhase,
  startExchange: () => ExchangeSpan.untraced(traceparent),
  end: () => {}
})

/**
 * Creates a span for each request as a child of the client's span. The span omits query and headers, because they may
 * hold credentials. Without a tracer no span is created, and no metric of the GenAI conventions.
 */
export const make: Effect.Effect<StartSpan, never, Scope.Scope> = Effect.gen(function* () {
  const tracer = yield* Effect.tracer
  if (tracer === Tracer.nativeTracer) return untracedSpan
  const version = yield* GenAiConventions
  const metrics = new GenAiMetrics(yield* CallbackMetrics.make, version)
  const spans = new Spans(tracer, yield* Clock.Clock)
  const services: ModelCallServices = { version, metrics, now: () => spans.now() }
  const startSpan: StartSpan = (request, target) => new RequestSpan(spans, services, request, target)
  return startSpan
})

/** A class is cheaper than closures. */
class RequestSpan implements Span {
  readonly #spans: Spans
  readonly #services: ModelCallServices
  readonly #span: Tracer.Span
  readonly #name: string
  readonly #method: string

  constructor(
    spans: Spans,
    services: ModelCallServices,
    { requestId, traceparent, wire }: Request,
    target: RoutedRequest | undefined
  ) {
    const { method } = wire
    const route = target?.route ?? "unrouted"
    const parent =
      traceparent === undefined ? Option.none() : HttpTraceContext.w3c(HeaderMap.fromInput({ traceparent }))
    this.#spans = spans
    this.#services = services
    this.#method = method
    this.#name = `${method} ${route}`
    const span = spans.open(this.#name, "server", parent)
    this.#span = span
    if (!span.sampled) return
    span.attribute("http.request.method", method)
    span.attribute("http.route", route)
    span.attribute("url.path", pathOf(wire.target))
    span.attribute("gateway.request_id", requestId)
    span.attribute("gateway.route", route)
    span.attribute("gateway.provider", target?.provider ?? "none")
  }

  get traceId(): string {
    return this.#span.traceId
  }

  get isRecorded(): boolean {
    return this.#span.sampled
  }

  startPhase(name: string): Phase {
    if (!this.isRecorded) return noPhase
    const phase = this.#spans.open(name, "internal", Option.some(this.#span))
    return {
      run: (effect) => Effect.provideService(effect, Tracer.ParentSpan, phase),
      end: () => this.#spans.end(phase)
    }
  }

  startExchange({ base, model, provider }: UpstreamCall): ExchangeSpan.Exchange {
    const { isRecorded } = this
    const request = model?.()
    const call = request && new ModelCall(request, base, { ...this.#services, isRecorded })
    return isRecorded
      ? ExchangeSpan.recorded(this.#spans, this.#span, { name: this.#name, method: this.#method, base, provider, call })
      : ExchangeSpan.unsampled(this.#span, call)
  }

  end(outcome: RequestOutcome, key: KeyRecord | undefined): void {
    if (!this.isRecorded) return
    for (const [name, value] of Object.entries(attributesOf(outcome, key))) {
      if (value !== undefined) this.#span.attribute(name, value)
    }
    const { error, status } = outcome
    // A client error (4xx) does not mark the span as failed.
    this.#spans.end(this.#span, status >= 500 ? (error?.code ?? String(status)) : undefined)
  }
}

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
