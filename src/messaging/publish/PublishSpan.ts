import { Context, Effect, Tracer } from "effect"
import type { Fields, Publication } from "../../services/Broker.ts"
import * as TraceContext from "../envelope/TraceContext.ts"
import * as MessageAttributes from "../observe/MessageAttributes.ts"

type WithPublishSpan = <E>(
  publication: Publication,
  publish: (publication: Publication) => Effect.Effect<void, E>
) => Effect.Effect<void, E>

/**
 * Runs a publish in a child span if the current span is sampled. A span costs more than the rest of the publish. Below
 * an unsampled span, the message carries the id of that span. The consumer then does not sample either.
 */
export const make: Effect.Effect<WithPublishSpan> = Effect.map(TraceContext.isTraced, (isTraced) => {
  const untraced: WithPublishSpan = (publication, publish) => publish(publication)
  if (!isTraced) return untraced
  const traced: WithPublishSpan = (publication, publish) =>
    Effect.withFiber(({ cache: { span: parent } }) => {
      if (parent === undefined || Context.get(parent.annotations, Tracer.DisablePropagation))
        return publish(publication)
      if (!parent.sampled) return publish(withTraceHeader(publication, parent))
      // Routing keys may contain ids, so the name has the exchange, if there is one.
      const name = `publish ${publication.exchange || publication.routingKey}`
      return Effect.useSpan(name, spanOptions(publication), (span) => publish(withTraceHeader(publication, span)))
    })
  return traced
})

const spanOptions = (publication: Publication): Tracer.SpanOptionsNoTrace => ({
  kind: "producer",
  links: linksOf(publication.properties.headers),
  attributes: {
    "messaging.operation.name": "publish",
    "messaging.operation.type": "send",
    ...MessageAttributes.of(publication)
  }
})

/** A message that is published again, such as for a retry, names the span that created it. The header then changes. */
const linksOf = (headers: Fields | undefined): ReadonlyArray<Tracer.SpanLink> => {
  const creation = TraceContext.ofHeaders(headers)
  return creation === undefined ? [] : [{ span: creation, attributes: {} }]
}

const withTraceHeader = (publication: Publication, span: Tracer.AnySpan): Publication => ({
  ...publication,
  properties: {
    ...publication.properties,
    headers: { ...publication.properties.headers, ...TraceContext.toHeaders(span) }
  }
})
