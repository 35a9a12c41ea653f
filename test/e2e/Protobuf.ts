type Value = string | number | boolean | ReadonlyArray<string | number | boolean>

/** The attributes of OpenTelemetry's protobuf. */
export type Attributes = Readonly<Record<string, Value>>

export interface Field {
  readonly number: number
  readonly bytes: Buffer
  readonly varint: bigint
}

/** The fields of a message of protobuf. */
export const fieldsOf = (bytes: Buffer): ReadonlyArray<Field> => {
  const fields: Array<Field> = []
  let at = 0
  const varint = () => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++]
      if (byte === undefined) throw new Error("the message ends within a number")
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  const take = (length: number) => {
    at += length
    return bytes.subarray(at - length, at)
  }
  while (at < bytes.length) {
    const tag = Number(varint())
    const number = tag >> 3
    switch (tag & 7) {
      case 0:
        fields.push({ number, bytes: Buffer.alloc(0), varint: varint() })
        break
      case 1:
        fields.push({ number, bytes: take(8), varint: 0n })
        break
      case 2:
        fields.push({ number, bytes: take(Number(varint())), varint: 0n })
        break
      case 5:
        fields.push({ number, bytes: take(4), varint: 0n })
        break
      default:
        throw new Error(`wire type ${tag & 7}`)
    }
  }
  return fields
}

/** The messages in a field that repeats. */
export const messages = (fields: ReadonlyArray<Field>, number: number): ReadonlyArray<ReadonlyArray<Field>> =>
  fields.filter((field) => field.number === number).map((field) => fieldsOf(field.bytes))

export const bytesOf = (fields: ReadonlyArray<Field>, number: number): Buffer =>
  fields.find((field) => field.number === number)?.bytes ?? Buffer.alloc(0)

export const numberOf = (fields: ReadonlyArray<Field>, number: number): bigint =>
  fields.find((field) => field.number === number)?.varint ?? 0n

export const attributesOf = (fields: ReadonlyArray<Field>, number: number): Attributes =>
  Object.fromEntries(
    messages(fields, number).map((attribute) => {
      const value = fieldsOf(bytesOf(attribute, 2))[0]
      return [bytesOf(attribute, 1).toString(), value === undefined ? "" : valueOf(value)]
    })
  )

const valueOf = ({ bytes, number, varint }: Field): Value => {
  switch (number) {
    case 5:
      return messages(fieldsOf(bytes), 1)
        .flatMap((item) => item.map(valueOf))
        .flat()
    case 2:
      return varint !== 0n
    case 3:
      return Number(varint)
    case 4:
      return bytes.readDoubleLE()
    default:
      return bytes.toString()
  }
}
