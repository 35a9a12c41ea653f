import type { Field, Fields } from "../../../src/services/Broker.ts"

const integerType = (value: number | bigint): string => {
  if (value >= -128 && value <= 127) return "byte"
  if (value >= -32_768 && value <= 32_767) return "short"
  return value >= -2_147_483_648 && value <= 2_147_483_647 ? "signedint" : "long"
}

/** Returns RabbitMQ's name for the AMQP type of the value. */
export const typeOf = (field: Field): string => {
  switch (typeof field) {
    case "string":
      return "longstr"
    case "boolean":
      return "bool"
    case "bigint":
      return integerType(field)
    case "number":
      return Number.isInteger(field) ? integerType(field) : "double"
  }
  if (field === null) return "void"
  if (field instanceof Date) return "timestamp"
  if (field instanceof Uint8Array) return "binary"
  return Array.isArray(field) ? "array" : "table"
}

const isTable = (field: Field): field is Fields => typeOf(field) === "table"

/** The field as a receiver decodes it, with well-formed text, whole seconds, and numbers for safe big integers. */
const normalizeField = (field: Field): Field => {
  if (typeof field === "bigint") return Number.isSafeInteger(Number(field)) ? Number(field) : field
  if (typeof field === "string") return field.toWellFormed()
  if (field === null || typeof field !== "object") return field
  if (field instanceof Date) return new Date(Math.floor(field.getTime() / 1_000) * 1_000)
  if (field instanceof Uint8Array) return Uint8Array.from(field)
  if (Array.isArray(field)) return field.map(normalizeField)
  return isTable(field) ? normalizeTable(field) : null
}

export const normalizeTable = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, normalizeField(field)]))

const jsonOf = (field: Field): string =>
  JSON.stringify(field, (_, value) => (typeof value === "bigint" ? `${value}` : value))

/** As in RabbitMQ, integers of different width are equal if they have the same value. */
export const fieldsEqual = (left: Field, right: Field): boolean => {
  if (typeof left === "bigint" || typeof right === "bigint") return jsonOf(left) === jsonOf(right)
  if (left === null || right === null || typeof left !== "object" || typeof right !== "object") return left === right
  return typeOf(left) === typeOf(right) && jsonOf(left) === jsonOf(right)
}

const displayText = (field: Field): string => (typeof field === "string" ? field : jsonOf(field))

/** Returns the difference in RabbitMQ's wording, or `undefined` if there is none. */
export const describeDifference = (received: Field | undefined, current: Field | undefined): string | undefined => {
  if (received === undefined) {
    return current === undefined
      ? undefined
      : `received none but current is the value '${displayText(current)}' of type '${typeOf(current)}'`
  }
  if (current === undefined) {
    return `received the value '${displayText(received)}' of type '${typeOf(received)}' but current is none`
  }
  return fieldsEqual(received, current)
    ? undefined
    : `received '${displayText(received)}' but current is '${displayText(current)}'`
}
