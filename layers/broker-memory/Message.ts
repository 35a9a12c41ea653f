import type { Field, Fields, Properties, Publication } from "../../src/services/Broker.ts"
import { receivedTable, typeOf } from "./Fields.ts"
import { refuse } from "./Refusal.ts"

/** As the broker keeps it. */
export interface Message {
  readonly exchange: string
  /** The publisher's own first, then those of its `CC` and `BCC` headers. */
  readonly routingKeys: readonly [string, ...ReadonlyArray<string>]
  readonly content: Uint8Array
  readonly properties: Properties
}

/** What the broker is taken to need beside the content, in bytes. */
const overhead = 512

export const weight = (message: Message): number => message.content.byteLength + overhead

export const carried = (headers: Fields | undefined, name: "CC" | "BCC"): ReadonlyArray<string> => {
  const keys: Field | undefined = headers?.[name]
  if (keys === undefined) return []
  return Array.isArray(keys)
    ? keys.filter((key) => typeof key === "string")
    : refuse(406, `invalid message: {unacceptable_type_in_header,"${name}",${typeOf(keys)}}`)
}

export const make = (publication: Omit<Publication, "purpose">): Message => {
  const { headers, timestamp, ...properties } = publication.properties
  const keys = [...carried(headers, "CC"), ...carried(headers, "BCC")]
  const { BCC: _, ...kept } = headers ?? {}
  return {
    exchange: publication.exchange,
    routingKeys: [publication.routingKey, ...keys],
    content: Uint8Array.from(publication.content),
    properties: {
      persistent: true,
      ...properties,
      headers: receivedTable(kept),
      ...(timestamp === undefined ? {} : { timestamp: new Date(Math.floor(timestamp.getTime() / 1_000) * 1_000) })
    }
  }
}

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

const within = (number: number, most: number): boolean => Number.isInteger(number) && number >= 0 && number <= most

/** What AMQP cannot carry, or RabbitMQ would close the channel for. */
export const problemOf = ({ exchange, properties, routingKey }: Omit<Publication, "purpose">): string | undefined => {
  const names: ReadonlyArray<readonly [string, string | undefined]> = [
    ["exchange", exchange],
    ["routingKey", routingKey],
    ...shortTexts.map((name) => [name, properties[name]] as const)
  ]
  for (const [name, text] of names) {
    const bytes = text === undefined ? 0 : Buffer.byteLength(text)
    if (bytes > 255) return `${name} has ${bytes} bytes: AMQP carries at most 255`
  }
  const { expiration, priority } = properties
  if (priority !== undefined && !within(priority, 255)) return `priority is ${priority}: it can be 0 to 255`
  if (expiration !== undefined && !within(expiration, 4_294_967_295)) {
    return `expiration is ${expiration}: it can be 0 to 4294967295 whole milliseconds`
  }
  return undefined
}
