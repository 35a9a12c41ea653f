import { Clock, Effect, Exit, Option, Tracer } from "effect"
import { Headers as HeaderMap, HttpTraceContext } from "effect/http"
import type { Request } from "./Request.ts"
import type { Routed } from "./Target.ts"

/** A request in traces. */
export interface Span {
  /** Begins a phase; answers what ends it. */
  readonly phase: (name: string) => () => void
  readonly end: (status: number) => void
}

export type Traced = (request: Request, target: Routed | undefined) => Span

const ignored = () => {}
const silent: Span = { phase: () => ignored, end: ignored }

/**
 * The span of a request, below the client's where it names one. Of the URL only the path is told, and no header:
 * anything else may be somebody's credential. Without a tracer no span is made: one costs five microseconds, also when
 * nobody collects it.
 */
export const make: Effect.Effect<Traced> = Effect.gen(function* () {
  const untraced: Traced = () => silent
  if ((yield* Effect.tracer) === Tracer.nativeTracer) return untraced
  const run = Effect.runSyncWith(yield* Effect.context<never>())
  const clock = yield* Clock.Clock
  const traced: Traced = ({ requestId, traceparent, wire }, target) => {
    const route = target?.route ?? "unrouted"
    const parent = HttpTraceContext.fromHeaders(HeaderMap.fromInput({ traceparent }))
    const span = run(
      Effect.makeSpan(`${wire.method} ${route}`, {
        kind: "server",
        ...Option.match(parent, { onNone: () => ({}), onSome: (parent) => ({ parent }) }),
        attributes: {
          "http.request.method": wire.method,
          "http.route": route,
          "url.path": wire.target.split("?", 1)[0],
          "gateway.request_id": requestId,
          "gateway.route": route,
          "gateway.provider": target?.provider ?? "none"
        }
      })
    )
    return {
      phase: (name) => {
        const phase = run(Effect.makeSpan(name, { parent: span }))
        return () => phase.end(clock.currentTimeNanosUnsafe(), Exit.void)
      },
      end: (status) => {
        span.attribute("http.response.status_code", status)
        // a span that fails is one for which the server is to blame
        span.end(clock.currentTimeNanosUnsafe(), status >= 500 ? Exit.fail(status) : Exit.void)
      }
    }
  }
  return traced
})
