import { Clock, Effect, Exit, Option, Tracer } from "effect"
import { Headers as HeaderMap, HttpTraceContext } from "effect/http"
import { toDollars } from "../../policy/Price.ts"
import type { RoutedRequest } from "../../policy/Routing.ts"
import type { Request } from "../request/Request.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import { pathOf } from "./AccessLog.ts"
import type { RequestOutcome } from "./RequestOutcome.ts"

export interface Span {
  readonly traceId: string | undefined
  /** Starts a child span. The returned function ends it. */
  readonly startPhase: (name: string) => () => void
  readonly startExchange: (name: string, origin: string) => Exchange
  readonly end: (outcome: RequestOutcome, key: KeyRecord | undefined) => void
}

interface Exchange {
  /** The `traceparent` header to send to the upstream. Without a tracer it is the client's own header. */
  readonly traceparent: string | undefined
  readonly end: (status: number | undefined) => void
}

export type StartSpan = (request: Request, target: RoutedRequest | undefined) => Span

const noop = () => {}
const untracedSpan = ({ traceparent }: Request): Span => ({
  traceId: undefined,
  startPhase: () => noop,
  startExchange: () => ({ traceparent, end: noop }),
  end: noop
})

/**
 * Creates a span for each request as a child of the client's span. The span omits query and headers, because they may
 * hold credentials. Without a tracer no span is created, because each span takes five microseconds.
 */
export const make: Effect.Effect<StartSpan> = Effect.gen(function* () {
  if ((yield* Effect.tracer) === Tracer.nativeTracer) return untracedSpan
  const run = Effect.runSyncWith(yield* Effect.context<never>())
  const clock = yield* Clock.Clock
  const startSpan: StartSpan = ({ requestId, traceparent, wire }, target) => {
    const route = target?.route ?? "unrouted"
    const parent = HttpTraceContext.fromHeaders(HeaderMap.fromInput({ traceparent }))
    const span = run(
      Effect.makeSpan(`${wire.method} ${route}`, {
        kind: "server",
        ...Option.match(parent, { onNone: () => ({}), onSome: (parent) => ({ parent }) }),
        attributes: {
          "http.request.method": wire.method,
          "http.route": route,
          "url.path": pathOf(wire.target),
          "gateway.request_id": requestId,
          "gateway.route": route,
          "gateway.provider": target?.provider ?? "none"
        }
      })
    )
    // A client error (4xx) does not mark the span as failed.
    const end = (span: Tracer.Span, status: number | undefined) => {
      if (status !== undefined) span.attribute("http.response.status_code", status)
      const exit = status === undefined || status >= 500 ? Exit.fail(status ?? "no answer") : Exit.void
      span.end(clock.currentTimeNanosUnsafe(), exit)
    }
    return {
      traceId: span.traceId,
      startPhase: (name) => {
        const phase = run(Effect.makeSpan(name, { parent: span }))
        return () => phase.end(clock.currentTimeNanosUnsafe(), Exit.void)
      },
      startExchange: (name, origin) => {
        const { hostname, port, protocol } = new URL(origin)
        const exchange = run(
          Effect.makeSpan(name, {
            kind: "client",
            parent: span,
            attributes: {
              "http.request.method": wire.method,
              "server.address": hostname,
              "server.port": Number(port) || (protocol === "https:" ? 443 : 80)
            }
          })
        )
        return {
          traceparent: HttpTraceContext.toHeaders(exchange)["traceparent"],
          end: (status) => end(exchange, status)
        }
      },
      end: (outcome, key) => {
        for (const [name, value] of Object.entries(attributesOf(outcome, key))) {
          if (value !== undefined) span.attribute(name, value)
        }
        end(span, outcome.status)
      }
    }
  }
  return startSpan
})

const attributesOf = ({ bill, error, fallback, model, streamed }: RequestOutcome, key: KeyRecord | undefined) => ({
  "error.type": error?.code,
  "gen_ai.request.model": model,
  "gen_ai.usage.input_tokens": bill.usage.input,
  "gen_ai.usage.output_tokens": bill.usage.output,
  "gateway.cost_usd": bill.costNanos === null ? undefined : toDollars(bill.costNanos),
  "gateway.key_prefix": key?.prefix,
  "gateway.project": key && Option.getOrUndefined(key.projectName),
  "gateway.streamed": streamed || undefined,
  "gateway.fallback_reason": fallback?.reason
})
