import type { Message } from "amqplib/callback_api"
import type { Properties, Publication } from "../../src/services/Broker.ts"
import * as Fields from "./Fields.ts"
import * as HeaderLimits from "./HeaderLimits.ts"

const shortTexts = [
  "contentType",
  "contentEncoding",
  "correlationId",
  "replyTo",
  "messageId",
  "type",
  "userId",
  "appId"
] as const

/** AMQP limits short strings to 255 bytes. An unpaired surrogate would arrive as another character. */
export const problemOfShortText = (name: string, text: string): string | undefined => {
  if (text.length > 85 && Buffer.byteLength(text) > 255)
    return `${name} has ${Buffer.byteLength(text)} bytes: AMQP allows at most 255`
  return text.isWellFormed() ? undefined : `${name} contains an unpaired surrogate, which UTF-8 cannot encode`
}

/** Describes why a message is invalid. The broker would close the channel for an invalid message. */
export const problemOf = ({
  exchange,
  routingKey,
  properties
}: Pick<Publication, "exchange" | "routingKey" | "properties">): string | undefined => {
  const misnamed = problemOfShortText("exchange", exchange) ?? problemOfShortText("routingKey", routingKey)
  if (misnamed !== undefined) return misnamed
  for (const name of shortTexts) {
    const text = properties[name]
    const problem = text === undefined ? undefined : problemOfShortText(name, text)
    if (problem !== undefined) return problem
  }
  const { expiration, headers, priority, timestamp } = properties
  if (priority !== undefined && !isWithin(priority, 255)) return `priority is ${priority}: it must be from 0 to 255`
  if (expiration !== undefined && !isWithin(expiration, 4_294_967_295))
    return `expiration is ${expiration}: it must be from 0 to 4294967295 whole milliseconds`
  if (timestamp !== undefined && !HeaderLimits.isTime(timestamp)) return "timestamp is not a time from 1970 on"
  if (headers === undefined) return undefined
  for (const name of ["CC", "BCC"])
    if (headers[name] !== undefined && !Array.isArray(headers[name])) return `the header ${name} is not a list`
  return HeaderLimits.problemOf(headers)
}

const isWithin = (number: number, most: number): boolean => Number.isInteger(number) && number >= 0 && number <= most

type Mutable<A> = { -readonly [K in keyof A]: A[K] }

export const propertiesOf = (received: Message["properties"]): Properties => {
  const properties: Mutable<Properties> = { persistent: received.deliveryMode === 2 }
  for (const name of shortTexts) if (received[name] !== undefined) properties[name] = received[name]
  if (received.headers !== undefined) properties.headers = Fields.fromWire(received.headers)
  if (received.priority !== undefined) properties.priority = received.priority
  if (received.expiration !== undefined) properties.expiration = Number(received.expiration)
  if (received.timestamp !== undefined) {
    // Other programs may send microseconds instead of seconds. The date is then invalid and ignored.
    const timestamp = new Date(received.timestamp * 1_000)
    if (HeaderLimits.isTime(timestamp)) properties.timestamp = timestamp
  }
  return properties
}

export const isSameMessage = (sent: Omit<Publication, "purpose">, returned: Message): boolean =>
  sent.exchange === returned.fields.exchange &&
  sent.routingKey === returned.fields.routingKey &&
  sent.properties.messageId === returned.properties.messageId &&
  sent.properties.correlationId === returned.properties.correlationId &&
  Buffer.compare(sent.content, returned.content) === 0 &&
  Fields.isSameField(sent.properties.headers ?? {}, Fields.fromWire(returned.properties.headers ?? {}))
