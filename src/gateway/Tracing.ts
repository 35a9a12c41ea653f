import { Effect, Option, Tracer } from "effect"
import { Headers as HeaderMap, HttpTraceContext } from "effect/http"
import type { Request } from "./Request.ts"
import type { Target } from "./Target.ts"
import type { Ended } from "./Telemetry.ts"

/** Without a tracer no span is made: one costs five microseconds, also when nobody collects it. */
const tracing: Effect.Effect<boolean> = Effect.map(Effect.tracer, (tracer) => tracer !== Tracer.nativeTracer)

/** Makes `effect` a phase of its request in traces. */
export type Phase = <A, E>(name: string, effect: Effect.Effect<A, E>) => Effect.Effect<A, E>

export const phase: Effect.Effect<Phase> = Effect.map(
  tracing,
  (traces): Phase => (traces ? (name, effect) => Effect.withSpan(effect, name) : (_, effect) => effect)
)

/**
 * Makes `answered` a request in traces, below the client's span where it names one. Of the URL only the path is told,
 * and no header: anything else may be somebody's credential.
 */
export type Traced = (
  request: Request,
  target: Target | undefined,
  answered: Effect.Effect<Ended>
) => Effect.Effect<Ended>

const spanned: Traced = (request, target, answered) => {
  const { requestId, traceparent, wire } = request
  const route = target?.route ?? "unrouted"
  const parent = HttpTraceContext.fromHeaders(HeaderMap.fromInput({ traceparent }))
  return Effect.flatMap(answered, (ended) =>
    Effect.andThen(
      Effect.annotateCurrentSpan("http.response.status_code", ended.status),
      // for the span alone: one that fails is one for which the server is to blame
      ended.status >= 500 ? Effect.fail(ended) : Effect.succeed(ended)
    )
  ).pipe(
    Effect.withSpan(`${wire.method} ${route}`, {
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
    }),
    Effect.catch(Effect.succeed)
  )
}

export const request: Effect.Effect<Traced> = Effect.map(
  tracing,
  (traces): Traced => (traces ? spanned : (_request, _target, answered) => answered)
)
