import type { Fields } from "../../src/services/Broker.ts"

const maxHeaderBytes = 65_536

/** Nesting of some thousand levels would overflow amqplib's stack. The limit also stops circular references. */
const maxDepth = 100

/** Describes a header that cannot be sent. amqplib's own error would not name the header. */
export const problemOf = (headers: Fields): string | undefined => {
  let left: BytesLeft = maxHeaderBytes - lengthBytes
  try {
    for (const name of Object.keys(headers)) {
      left = bytesLeftAfterMember(name, headers[name], left, 1)
      if (typeof left === "string") return `the header ${shortened(name)} ${left}`
    }
  } catch {
    return "the headers throw when they are read"
  }
  return undefined
}

type BytesLeft = number | string

const tooManyBytes = `exceeds the limit: all headers of a message together may have ${maxHeaderBytes} bytes`

const lengthBytes = 4

const bytesLeftAfterMember = (name: string, field: unknown, left: number, depth: number): BytesLeft => {
  const bytes = Buffer.byteLength(name)
  if (bytes > 255) return `has a name of ${bytes} bytes: AMQP allows at most 255`
  if (name === "__proto__") return "is not allowed: amqplib would take the name for the prototype of the table"
  return bytesLeftAfter(field, left - 1 - bytes, depth)
}

const bytesLeftAfter = (field: unknown, left: number, depth: number): BytesLeft => {
  const bytes = bytesOf(field)
  if (typeof bytes === "string") return bytes
  let rest = left - 1 - bytes
  if (rest < 0) return tooManyBytes
  if (typeof field !== "object" || field === null || field instanceof Date || field instanceof Uint8Array) return rest
  if (depth > maxDepth) return `is nested more than ${maxDepth} levels deep`
  if (Array.isArray(field)) {
    for (const item of field) {
      const next = bytesLeftAfter(item, rest, depth + 1)
      if (typeof next === "string") return next
      rest = next
    }
    return rest
  }
  for (const [name, member] of Object.entries(field)) {
    const next = bytesLeftAfterMember(name, member, rest, depth + 1)
    if (typeof next === "string") return next
    rest = next
  }
  return rest
}

/** Returns the encoded size without the type byte. For lists and tables, only the length field counts here. */
const bytesOf = (field: unknown): number | string => {
  switch (typeof field) {
    case "string":
      return lengthBytes + Buffer.byteLength(field)
    case "boolean":
      return 1
    case "number":
      return Number.isFinite(field) ? bytesOfNumber(field) : `is ${field}: RabbitMQ cannot represent this number`
    case "bigint":
      return BigInt.asIntN(64, field) === field ? 8 : "is an integer of more than 64 bits"
    case "object":
      if (field === null) return 0
      if (field instanceof Date) return isTime(field) ? 8 : "is not a time from 1970 on"
      return lengthBytes + (field instanceof Uint8Array ? field.byteLength : 0)
    default:
      return `is ${field === undefined ? "undefined" : `a ${typeof field}`}: leave it out`
  }
}

const bytesOfNumber = (number: number): number => {
  if (!Number.isInteger(number) || number < -2_147_483_648 || number > 2_147_483_647) return 8
  if (number < -32_768 || number > 32_767) return 4
  return number < -128 || number > 127 ? 2 : 1
}

export const isTime = (date: Date): boolean => date.getTime() >= 0

const shortened = (name: string): string => (name.length > 60 ? `${name.slice(0, 60)}…` : name)
