/** A span as it is exported. Ids are in hex, and empty where there is none. */
export interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  readonly name: string
  /** 1: internal, 2: server, 3: client. */
  readonly kind: number
  readonly attributes: Readonly<Record<string, string | number | boolean>>
}

export interface Exported {
  readonly resource: Span["attributes"]
  readonly spans: ReadonlyArray<Span>
}

/** Reads `TracesData` of OpenTelemetry's protobuf, as far as tests ask about it. */
export const read = (bytes: Buffer): ReadonlyArray<Exported> =>
  messages(fieldsOf(bytes), 1).map((resourceSpans) => ({
    resource: attributesOf(messages(resourceSpans, 1)[0] ?? [], 1),
    spans: messages(resourceSpans, 2).flatMap((scopeSpans) =>
      messages(scopeSpans, 2).map((span) => ({
        traceId: bytesOf(span, 1).toString("hex"),
        spanId: bytesOf(span, 2).toString("hex"),
        parentSpanId: bytesOf(span, 4).toString("hex"),
        name: bytesOf(span, 5).toString(),
        kind: Number(numberOf(span, 6)),
        attributes: attributesOf(span, 9)
      }))
    )
  }))

interface Field {
  readonly number: number
  readonly bytes: Buffer
  readonly varint: bigint
}

const fieldsOf = (bytes: Buffer): ReadonlyArray<Field> => {
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

const messages = (fields: ReadonlyArray<Field>, number: number): ReadonlyArray<ReadonlyArray<Field>> =>
  fields.filter((field) => field.number === number).map((field) => fieldsOf(field.bytes))

const bytesOf = (fields: ReadonlyArray<Field>, number: number): Buffer =>
  fields.find((field) => field.number === number)?.bytes ?? Buffer.alloc(0)

const numberOf = (fields: ReadonlyArray<Field>, number: number): bigint =>
  fields.find((field) => field.number === number)?.varint ?? 0n

const attributesOf = (fields: ReadonlyArray<Field>, number: number): Span["attributes"] =>
  Object.fromEntries(
    messages(fields, number).map((attribute) => {
      const value = fieldsOf(bytesOf(attribute, 2))[0]
      return [bytesOf(attribute, 1).toString(), value === undefined ? "" : valueOf(value)]
    })
  )

const valueOf = ({ bytes, number, varint }: Field): string | number | boolean => {
  switch (number) {
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
