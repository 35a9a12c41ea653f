import { Cause, Effect, Exit, Result, type Tracer } from "effect"
import type { EgressError, EgressRequest, EgressResponse } from "../../src/services/Egress.ts"
import * as Traceparent from "../../src/services/Traceparent.ts"

/** Runs a request in a client span. The span omits path and query, because they may hold credentials. */
export const around = <E extends EgressError>(
  method: EgressRequest["method"],
  origin: string,
  send: (span: Tracer.Span) => Effect.Effect<EgressResponse, E>
): Effect.Effect<EgressResponse, E> =>
  Effect.useSpan(method, { kind: "client" }, (span) =>
    span.sampled
      ? Effect.onExit(send(span), (exit) => Effect.sync(() => describe(span, method, origin, exit)))
      : send(span)
  )

/** The server continues the trace of a request that caused the call. Other requests begin no trace. */
export const headersOf = (span: Tracer.Span): ReadonlyArray<string> =>
  span.sampled ? ["traceparent", Traceparent.of(span)] : []

const describe = (
  span: Tracer.Span,
  method: string,
  origin: string,
  exit: Exit.Exit<EgressResponse, EgressError>
): void => {
  const { hostname, port, protocol } = new URL(origin)
  span.attribute("http.request.method", method)
  span.attribute("server.address", hostname)
  span.attribute("server.port", Number(port) || (protocol === "https:" ? 443 : 80))
  if (Exit.isFailure(exit)) {
    const error = Result.getOrUndefined(Cause.findError(exit.cause))
    if (error !== undefined) span.attribute("error.type", error.reason)
    return
  }
  const { status } = exit.value
  span.attribute("http.response.status_code", status)
  if (status >= 400) span.attribute("error.type", String(status))
}
