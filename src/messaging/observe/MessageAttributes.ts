import type { Publication } from "../../services/Broker.ts"

interface SpannedMessage extends Pick<Publication, "content" | "exchange" | "properties" | "routingKey"> {
  /** The queue from which a message was delivered. */
  readonly queue?: string
}

/** Returns the attributes of a span about one message, by OpenTelemetry's conventions for RabbitMQ. */
export const of = ({ content, exchange, properties, queue = "", routingKey }: SpannedMessage) => ({
  "messaging.system": "rabbitmq",
  "messaging.destination.name": joined([exchange, routingKey, queue]),
  ...(routingKey !== "" && { "messaging.rabbitmq.destination.routing_key": routingKey }),
  ...(properties.messageId !== undefined && { "messaging.message.id": properties.messageId }),
  ...(properties.correlationId !== undefined && { "messaging.message.conversation_id": properties.correlationId }),
  "messaging.message.body.size": content.length
})

const joined = (parts: ReadonlyArray<string>): string =>
  [...new Set(parts)].filter((part) => part !== "").join(":") || "amq.default"
