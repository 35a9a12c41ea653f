import type { Message, Options } from "amqplib/callback_api"
import type { Properties, Publication } from "../../src/services/Broker.ts"
import * as Fields from "./Fields.ts"

const texts = [
  "contentType",
  "contentEncoding",
  "correlationId",
  "replyTo",
  "messageId",
  "type",
  "userId",
  "appId"
] as const

/** AMQP's short strings are counted in one byte. */
const tooLong = (text: string): boolean => text.length > 85 && Buffer.byteLength(text) > 255

const longName = (name: string, text: string): string =>
  `${name} has ${Buffer.byteLength(text)} bytes: AMQP carries at most 255`

/**
 * What AMQP, or RabbitMQ, could not take: said before it is sent, as it would cost the channel and all that is under way
 * there. The size of the headers shows when they are encoded.
 */
export const problemOf = ({
  exchange,
  routingKey,
  properties
}: Pick<Publication, "exchange" | "routingKey" | "properties">): string | undefined => {
  if (tooLong(exchange)) return longName("exchange", exchange)
  if (tooLong(routingKey)) return longName("routingKey", routingKey)
  for (const name of texts) {
    const text = properties[name]
    if (text !== undefined && tooLong(text)) return longName(name, text)
  }
  const { expiration, priority } = properties
  if (priority !== undefined && !within(priority, 255)) return `priority is ${priority}: it can be 0 to 255`
  if (expiration !== undefined && !within(expiration, 4_294_967_295))
    return `expiration is ${expiration}: it can be 0 to 4294967295 whole milliseconds`
  return undefined
}

const within = (number: number, most: number): boolean => Number.isInteger(number) && number >= 0 && number <= most

/** Throws what amqplib's encoder would throw later: a timestamp that is not one. */
export const optionsOf = (properties: Properties): Options.Publish => {
  const { headers, timestamp, persistent, ...rest } = properties
  const options: Options.Publish = rest
  options.mandatory = true
  options.persistent = persistent !== false
  if (headers !== undefined) options.headers = Fields.toWire(headers)
  if (timestamp !== undefined) options.timestamp = Math.floor(timestamp.getTime() / 1_000)
  return options
}

type Mutable<A> = { -readonly [K in keyof A]: A[K] }

export const propertiesOf = (received: Message["properties"]): Properties => {
  const properties: Mutable<Properties> = { persistent: received.deliveryMode === 2 }
  for (const name of texts) if (received[name] !== undefined) properties[name] = received[name]
  if (received.headers !== undefined) properties.headers = Fields.fromWire(received.headers)
  if (received.priority !== undefined) properties.priority = received.priority
  if (received.expiration !== undefined) properties.expiration = Number(received.expiration)
  if (received.timestamp !== undefined) properties.timestamp = new Date(received.timestamp * 1_000)
  return properties
}

/** Without a copy. */
export const bufferOf = (content: Uint8Array): Buffer =>
  Buffer.isBuffer(content) ? content : Buffer.from(content.buffer, content.byteOffset, content.byteLength)

/** Everything that routing looks at, and the ids that tell twins apart. */
export const sameMessage = (sent: Omit<Publication, "purpose">, returned: Message): boolean =>
  sent.exchange === returned.fields.exchange &&
  sent.routingKey === returned.fields.routingKey &&
  sent.properties.messageId === returned.properties.messageId &&
  sent.properties.correlationId === returned.properties.correlationId &&
  Buffer.compare(sent.content, returned.content) === 0 &&
  Fields.same(sent.properties.headers ?? {}, Fields.fromWire(returned.properties.headers ?? {}))
