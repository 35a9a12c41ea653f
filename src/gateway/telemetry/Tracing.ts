import { Clock, Effect, Exit, Option, Tracer } from "effect"
import { Headers as HeaderMap, HttpTraceContext } from "effect/http"
import { toDollars } from "../../policy/Price.ts"
import type { RoutedRequest } from "../../policy/Routing.ts"
import type { Request } from "../request/Request.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import { pathOf } from "./AccessLog.ts"
import type { RequestOutcome } from "./RequestOutcome.ts"

/** A request in traces. */
export interface Span {
  /** `undefined` where nothing is traced. */
  readonly traceId: string | undefined
  /** Begins a phase; answers what ends it. */
  readonly startPhase: (name: string) => () => void
  /** Begins an exchange with the upstream at `origin`. */
  readonly startExchange: (name: string, origin: string) => Exchange
  readonly end: (ended: RequestOutcome, key: KeyRecord | undefined) => void
}

/** An exchange with an upstream in traces. */
export interface Exchange {
  /** Tells the upstream which span is its parent: this one, or where nothing is traced, the client's. */
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
 * The span of a request, below the client's where it names one. Of the URL only the path is told, and no header:
 * anything else may be somebody's credential. Without a tracer no span is made: one costs five microseconds, also when
 * nobody collects it.
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
    // a span that fails is one for which a server is to blame
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
      end: (ended, key) => {
        for (const [name, value] of Object.entries(attributesOf(ended, key))) {
          if (value !== undefined) span.attribute(name, value)
        }
        end(span, ended.status)
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
