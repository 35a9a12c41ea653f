import type { Field, Fields, Properties, Publication } from "../../src/services/Broker.ts"
import { isList } from "./Fields.ts"

/**
 * Encodes `basic.publish` with the same bytes as amqplib at a fifth of the cost. Each byte is written only once, into
 * the buffer that is sent. The caller must validate messages with `Messages.problemOf`.
 */

type Message = Omit<Publication, "purpose">

export const maxFrameBytes = ({ content }: Message, frameMax: number): number =>
  maxBytesBeforeBody + content.length + frameOverhead * Math.ceil(content.length / (frameMax - frameOverhead))

const frameOverhead = 8

/** 64 KiB of headers (see `HeaderLimits.problemOf`), eleven short strings, and the fields of fixed size. */
const maxBytesBeforeBody = 65_536 + 11 * 256 + 128

/** Writes a publish with the flag `mandatory`. Returns the position after its last byte. */
export const write = (into: Buffer, at: number, channel: number, frameMax: number, message: Message): number => {
  const header = writeMethod(into, at, channel, message)
  const body = writeHeader(into, header, channel, message)
  return writeBody(into, body, channel, frameMax, message.content)
}

const methodFrame = 1
const headerFrame = 2
const bodyFrame = 3
const frameEnd = 206

const basicClass = 60
const publishMethod = 40
const mandatory = 1

const writeMethod = (into: Buffer, start: number, channel: number, { exchange, routingKey }: Message): number => {
  let at = start + 7
  at = writeShort(into, at, basicClass)
  at = writeShort(into, at, publishMethod)
  at = writeShort(into, at, 0)
  at = writeShortText(into, at, exchange)
  at = writeShortText(into, at, routingKey)
  into[at] = mandatory
  return closeFrame(into, methodFrame, channel, start, at + 1)
}

const writeHeader = (into: Buffer, start: number, channel: number, { content, properties }: Message): number => {
  let at = start + 7
  at = writeShort(into, at, basicClass)
  at = writeShort(into, at, 0)
  at = writeLong(into, at, Math.floor(content.length / 4_294_967_296))
  at = writeLong(into, at, content.length % 4_294_967_296)
  return closeFrame(into, headerFrame, channel, start, writeProperties(into, at, properties))
}

const writeBody = (into: Buffer, start: number, channel: number, frameMax: number, content: Uint8Array): number => {
  const most = frameMax - frameOverhead
  if (content.length > 0 && content.length <= most) {
    into.set(content, start + 7)
    return closeFrame(into, bodyFrame, channel, start, start + 7 + content.length)
  }
  let at = start
  for (let from = 0; from < content.length; from += most) {
    const part = content.subarray(from, from + most)
    into.set(part, at + 7)
    at = closeFrame(into, bodyFrame, channel, at, at + 7 + part.length)
  }
  return at
}

const closeFrame = (into: Buffer, type: number, channel: number, start: number, end: number): number => {
  if (end >= into.length) throw new RangeError("The message grew after its size was computed")
  into[start] = type
  writeShort(into, start + 1, channel)
  writeLong(into, start + 3, end - start - 7)
  into[end] = frameEnd
  return end + 1
}

/** Writes the flags and values of the properties. Like amqplib, it writes a header table even without headers. */
const writeProperties = (into: Buffer, start: number, properties: Properties): number => {
  const { appId, contentEncoding, contentType, correlationId, expiration, messageId } = properties
  const { headers, persistent, priority, replyTo, timestamp, type, userId } = properties
  let flags = 0x2000 | 0x1000
  let at = start + 2
  if (contentType !== undefined) {
    flags |= 0x8000
    at = writeShortText(into, at, contentType)
  }
  if (contentEncoding !== undefined) {
    flags |= 0x4000
    at = writeShortText(into, at, contentEncoding)
  }
  at = writeTable(into, at, headers ?? {})
  into[at] = persistent === false ? 1 : 2
  at += 1
  if (priority !== undefined) {
    flags |= 0x0800
    into[at] = priority
    at += 1
  }
  if (correlationId !== undefined) {
    flags |= 0x0400
    at = writeShortText(into, at, correlationId)
  }
  if (replyTo !== undefined) {
    flags |= 0x0200
    at = writeShortText(into, at, replyTo)
  }
  if (expiration !== undefined) {
    flags |= 0x0100
    at = writeShortText(into, at, String(expiration))
  }
  if (messageId !== undefined) {
    flags |= 0x0080
    at = writeShortText(into, at, messageId)
  }
  if (timestamp !== undefined) {
    flags |= 0x0040
    at = writeTime(into, at, timestamp)
  }
  if (type !== undefined) {
    flags |= 0x0020
    at = writeShortText(into, at, type)
  }
  if (userId !== undefined) {
    flags |= 0x0010
    at = writeShortText(into, at, userId)
  }
  if (appId !== undefined) {
    flags |= 0x0008
    at = writeShortText(into, at, appId)
  }
  writeShort(into, start, flags)
  return at
}

const writeTable = (into: Buffer, start: number, table: Fields): number => {
  let at = start + 4
  for (const name of Object.keys(table)) {
    const field = table[name]
    if (field === undefined) continue
    at = writeField(into, writeShortText(into, at, name), field)
  }
  writeLong(into, start, at - start - 4)
  return at
}

const writeList = (into: Buffer, start: number, list: ReadonlyArray<Field>): number => {
  let at = start + 4
  for (const field of list) at = writeField(into, at, field)
  writeLong(into, start, at - start - 4)
  return at
}

/** The type letters follow RabbitMQ, which differs from the AMQP standard. */
const writeField = (into: Buffer, at: number, field: Field): number => {
  if (typeof field === "string") return writeLongText(into, writeTypeTag(into, at, "S"), field)
  if (typeof field === "number") return writeNumber(into, at, field)
  if (typeof field === "boolean") {
    into[writeTypeTag(into, at, "t")] = field ? 1 : 0
    return at + 2
  }
  if (typeof field === "bigint") return into.writeBigInt64BE(field, writeTypeTag(into, at, "l"))
  if (field === null) return writeTypeTag(into, at, "V")
  if (field instanceof Date) return writeTime(into, writeTypeTag(into, at, "T"), field)
  if (field instanceof Uint8Array) {
    const start = writeLong(into, writeTypeTag(into, at, "x"), field.length)
    into.set(field, start)
    return start + field.length
  }
  return isList(field)
    ? writeList(into, writeTypeTag(into, at, "A"), field)
    : writeTable(into, writeTypeTag(into, at, "F"), field)
}

const writeNumber = (into: Buffer, at: number, number: number): number => {
  if (!Number.isInteger(number) || number < -(2 ** 63) || number >= 2 ** 63)
    return into.writeDoubleBE(number, writeTypeTag(into, at, "d"))
  if (number >= -128 && number < 128) return into.writeInt8(number, writeTypeTag(into, at, "b"))
  if (number >= -32_768 && number < 32_768) return into.writeInt16BE(number, writeTypeTag(into, at, "s"))
  if (number >= -2_147_483_648 && number < 2_147_483_648) return into.writeInt32BE(number, writeTypeTag(into, at, "I"))
  return into.writeBigInt64BE(BigInt(number), writeTypeTag(into, at, "l"))
}

const writeTypeTag = (into: Buffer, at: number, letter: string): number => {
  into[at] = letter.charCodeAt(0)
  return at + 1
}

const writeShort = (into: Buffer, at: number, number: number): number => {
  into[at] = number >>> 8
  into[at + 1] = number
  return at + 2
}

const writeLong = (into: Buffer, at: number, number: number): number => {
  into[at] = number >>> 24
  into[at + 1] = number >>> 16
  into[at + 2] = number >>> 8
  into[at + 3] = number
  return at + 4
}

const writeTime = (into: Buffer, at: number, time: Date): number =>
  into.writeBigUInt64BE(BigInt(Math.floor(time.getTime() / 1_000)), at)

const writeShortText = (into: Buffer, at: number, text: string): number => {
  const end = at + 1 + into.write(text, at + 1)
  if (end - at > 256) throw new RangeError("A string grew beyond the limit of AMQP after it was checked")
  into[at] = end - at - 1
  return end
}

const writeLongText = (into: Buffer, at: number, text: string): number => {
  const end = at + 4 + into.write(text, at + 4)
  writeLong(into, at, end - at - 4)
  return end
}
