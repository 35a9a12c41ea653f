import type { Field, Fields, Properties, Publication } from "../../../src/services/Broker.ts"
import { refuse } from "./ChannelException.ts"
import { normalizeTable, typeOf } from "./Fields.ts"

export interface Message {
  readonly exchange: string
  /** The routing key of the publish, followed by the keys in the `CC` and `BCC` headers. */
  readonly routingKeys: readonly [string, ...ReadonlyArray<string>]
  readonly content: Uint8Array
  readonly properties: Properties
}

/** The assumed memory of a message in addition to its content, in bytes. */
const overhead = 512

/** The default of RabbitMQ's `max_message_size`, in bytes. */
const maxSize = 134_217_728

export const memorySize = (message: Message): number => message.content.byteLength + overhead

export const extraRoutingKeys = (headers: Fields | undefined, name: "CC" | "BCC"): ReadonlyArray<string> => {
  const keys: Field | undefined = headers?.[name]
  if (keys === undefined) return []
  return Array.isArray(keys)
    ? keys.filter((key) => typeof key === "string")
    : refuse(406, `invalid message: {unacceptable_type_in_header,"${name}",${typeOf(keys)}}`)
}

export const messageOf = (publication: Omit<Publication, "purpose">): Message => {
  const { byteLength } = publication.content
  if (byteLength > maxSize) refuse(406, `message size ${byteLength} is larger than configured max size ${maxSize}`)
  const { headers, timestamp, ...properties } = publication.properties
  const keys = [...extraRoutingKeys(headers, "CC"), ...extraRoutingKeys(headers, "BCC")]
  const { BCC: _, ...storedHeaders } = headers ?? {}
  return {
    exchange: publication.exchange,
    routingKeys: [publication.routingKey, ...keys],
    content: Uint8Array.from(publication.content),
    properties: {
      persistent: true,
      ...properties,
      headers: normalizeTable(storedHeaders),
      ...(timestamp === undefined ? {} : { timestamp: new Date(Math.floor(timestamp.getTime() / 1_000) * 1_000) })
    }
  }
}
