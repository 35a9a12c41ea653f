import { Context, Effect, Tracer } from "effect"
import type { Publication } from "../services/Broker.ts"

export type Traced = <E>(
  publication: Publication,
  publish: (publication: Publication) => Effect.Effect<void, E>
) => Effect.Effect<void, E>

/**
 * A span for each publish below a span that is sampled, told on in the header `traceparent`. Without a tracer, or without
 * such a span, none is made: one costs more than everything else that this side does for a publish.
 */
export const make: Effect.Effect<Traced> = Effect.map(Effect.tracer, (tracer) => {
  const untraced: Traced = (publication, publish) => publish(publication)
  if (tracer === Tracer.nativeTracer) return untraced
  const traced: Traced = (publication, publish) =>
    Effect.withFiber((fiber) =>
      Context.getOrUndefined(fiber.context, Tracer.ParentSpan)?.sampled === true
        ? Effect.useSpan(`publish ${publication.exchange || publication.routingKey}`, options(publication), (span) =>
            publish(withParent(publication, `00-${span.traceId}-${span.spanId}-01`))
          )
        : publish(publication)
    )
  return traced
})

const options = ({ content, exchange, properties, routingKey }: Publication): Tracer.SpanOptionsNoTrace => ({
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

const withParent = (publication: Publication, traceparent: string): Publication => ({
  ...publication,
  properties: { ...publication.properties, headers: { ...publication.properties.headers, traceparent } }
})
