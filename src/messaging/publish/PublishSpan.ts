import { Context, Effect, Tracer } from "effect"
import type { Publication } from "../../services/Broker.ts"
import * as TraceContext from "../envelope/TraceContext.ts"

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
      return Effect.useSpan(
        `publish ${publication.exchange || publication.routingKey}`,
        spanOptions(publication),
        (span) => publish(withTraceHeader(publication, span))
      )
    })
  return traced
})

const spanOptions = ({ content, exchange, properties, routingKey }: Publication): Tracer.SpanOptionsNoTrace => ({
  kind: "producer",
  attributes: {
    "messaging.system": "rabbitmq",
    "messaging.operation.type": "send",
    "messaging.destination.name": exchange,
    "messaging.rabbitmq.destination.routing_key": routingKey,
    "messaging.message.conversation_id": properties.correlationId,
    "messaging.message.body.size": content.length
  }
})

const withTraceHeader = (publication: Publication, span: Tracer.AnySpan): Publication => ({
  ...publication,
  properties: {
    ...publication.properties,
    headers: { ...publication.properties.headers, ...TraceContext.toHeaders(span) }
  }
})
