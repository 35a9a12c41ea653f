import type { Field, Fields } from "../../src/services/Broker.ts"

interface Typed {
  readonly "!": string
  readonly value: unknown
}

type Wire = string | number | boolean | null | Buffer | Typed | ReadonlyArray<Wire> | { readonly [name: string]: Wire }

/** Converts fields to amqplib's types. Throws a `RangeError` for a number that AMQP cannot represent. */
export const toWire = (fields: Fields): { readonly [name: string]: Wire } => {
  // The object has no prototype, because a field may be named `__proto__`.
  const wire: Record<string, Wire> = Object.create(null)
  for (const [name, field] of Object.entries(fields)) wire[name] = wireOf(field)
  return wire
}

const wireOf = (field: Field): Wire => {
  if (typeof field === "string" || typeof field === "boolean" || field === null) return field
  if (typeof field === "number") return wireOfNumber(field)
  if (typeof field === "bigint") return { "!": "int64", value: field }
  if (field instanceof Date) return { "!": "timestamp", value: Math.floor(field.getTime() / 1_000) }
  if (field instanceof Uint8Array) return Buffer.from(field.buffer, field.byteOffset, field.byteLength)
  if (isList(field)) return field.map(wireOf)
  const table = toWire(field)
  return Object.hasOwn(table, "!") ? { "!": "object", value: table } : table
}

/** NaN and infinities make RabbitMQ close the connection. amqplib needs an explicit type for fractions above 2^50. */
const wireOfNumber = (number: number): Wire => {
  if (!Number.isFinite(number)) throw new RangeError(`RabbitMQ cannot represent the number ${number}`)
  return Number.isInteger(number) && number >= smallestInteger ? number : { "!": "double", value: number }
}

const smallestInteger = -(2 ** 63)

/** TypeScript does not narrow a read-only array with `Array.isArray`. */
export const isList = (field: object): field is ReadonlyArray<Field> => Array.isArray(field)

export const fromWire = (table: object): Fields => {
  const fields: Record<string, Field> = {}
  for (const [name, value] of Object.entries(table)) fields[name] = fieldOf(value)
  return fields
}

const fieldOf = (value: unknown): Field => {
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return value
  if (typeof value !== "object" || value === null) return null
  if (value instanceof Uint8Array) return value
  if (Array.isArray(value)) return value.map(fieldOf)
  return decodeTyped(value) ?? fromWire(value)
}

const decodeTyped = (value: object): Field | undefined => {
  if (!("!" in value && "value" in value)) return undefined
  const { "!": type, value: inner } = value
  if (type === "timestamp" && typeof inner === "number") return new Date(inner * 1_000)
  if (type !== "decimal" || typeof inner !== "object" || inner === null) return undefined
  return "digits" in inner && "places" in inner ? Number(inner.digits) / 10 ** Number(inner.places) : undefined
}

export const isSameField = (sent: Field | undefined, received: Field | undefined): boolean => {
  if (sent === received) return true
  if (typeof sent === "number" || typeof sent === "bigint") return Object.is(Number(sent), received)
  if (sent instanceof Date)
    return received instanceof Date && Math.floor(sent.getTime() / 1_000) * 1_000 === received.getTime()
  if (sent instanceof Uint8Array) return received instanceof Uint8Array && Buffer.compare(sent, received) === 0
  if (typeof sent !== "object" || typeof received !== "object" || sent === null || received === null) return false
  const [ours, theirs] = [Object.entries(sent), new Map<string, Field>(Object.entries(received))]
  return ours.length === theirs.size && ours.every(([name, field]) => isSameField(field, theirs.get(name)))
}
