import { Option, type Tracer } from "effect"
import type { Provider } from "../../policy/routes/CanonicalRoute.ts"
import type { UpstreamBase } from "../../policy/routes/UpstreamBase.ts"
import * as Traceparent from "../../services/Traceparent.ts"
import type { ResponseReader } from "../usage/ResponseReader.ts"
import { type CallResult, errorTypeOf, type ModelCall, serverOf } from "./ModelCall.ts"
import type { Spans } from "./Spans.ts"

/** One exchange with an upstream, as telemetry sees it. */
export interface Exchange {
  /** The `traceparent` header to send to the upstream. Without a tracer it is the client's own header. */
  readonly traceparent: string | undefined
  /** Reads the response for the span and the metrics. `undefined` if nothing of it is exported. */
  readonly reader: ResponseReader | undefined
  /** Called when the response is complete, if something else happens before `end`. */
  readonly received: () => void
  readonly end: (result: CallResult) => void
}

const noop = () => {}

export const untraced = (traceparent: string | undefined): Exchange => ({
  traceparent,
  reader: undefined,
  received: noop,
  end: noop
})

/** An exchange whose trace is not exported. A call of a model is measured all the same. */
export const unsampled = (parent: Tracer.Span, call: ModelCall | undefined): Exchange =>
  call === undefined
    ? untraced(Traceparent.of(parent))
    : {
        traceparent: Traceparent.of(parent),
        reader: call.response,
        received: () => call.received(),
        end: (result) => call.end(result)
      }

export interface RecordedExchange {
  /** The name of the span if the exchange calls no model. */
  readonly name: string
  readonly method: string
  readonly base: UpstreamBase
  readonly provider: Provider
  readonly call: ModelCall | undefined
}

/** An exchange with a span of its own. */
export const recorded = (
  spans: Spans,
  parent: Tracer.Span,
  { base, call, method, name, provider }: RecordedExchange
): Exchange => {
  const span = spans.open(call?.spanName ?? name, "client", Option.some(parent))
  const { address, port } = serverOf(base)
  span.attribute("http.request.method", method)
  span.attribute("gateway.provider", provider)
  span.attribute("server.address", address)
  span.attribute("server.port", port)
  let endedAt: bigint | undefined
  const received = () => {
    call?.received()
    endedAt ??= spans.nanos()
  }
  return {
    traceparent: Traceparent.of(span),
    reader: call?.response,
    received,
    end: (result) => {
      received()
      call?.end(result)
      const { status, withheldStatus = status } = result
      const errorType = errorTypeOf(result)
      if (withheldStatus !== undefined) span.attribute("http.response.status_code", withheldStatus)
      if (errorType !== undefined) span.attribute("error.type", errorType)
      for (const [name, value] of call?.attributes(result) ?? []) span.attribute(name, value)
      spans.end(span, errorType, endedAt)
    }
  }
}
