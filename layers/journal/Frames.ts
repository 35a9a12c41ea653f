import { deserialize, serialize } from "node:v8"
import { crc32 } from "node:zlib"

/**
 * A file of records. Each record has a header of 12 bytes: a mark, the length and the CRC-32 of its value. The value is
 * in the format of `structuredClone`, which later versions of Node can read.
 */
const mark = Buffer.from("SVJ\n")
const headerBytes = 12

export const encode = (record: unknown): Buffer => {
  const value = serialize(record)
  const header = Buffer.allocUnsafe(headerBytes)
  mark.copy(header)
  header.writeUInt32LE(value.length, 4)
  header.writeUInt32LE(crc32(value), 8)
  return Buffer.concat([header, value])
}

const valueAt = (file: Buffer, offset: number): Buffer | undefined => {
  const start = offset + headerBytes
  if (start > file.length || file.compare(mark, 0, mark.length, offset, offset + mark.length) !== 0) return undefined
  const end = start + file.readUInt32LE(offset + 4)
  if (end > file.length) return undefined
  const value = file.subarray(start, end)
  return crc32(value) === file.readUInt32LE(offset + 8) ? value : undefined
}

/**
 * The end of the whole records of a file. After it comes nothing, a `tail` without a whole record, as a killed process or
 * a power cut leaves it, or `damage` that whole records follow.
 */
export interface End {
  readonly offset: number
  readonly rest: "nothing" | "tail" | "damage"
}

export const read = (file: Buffer, onRecord: (record: unknown) => void): End => {
  let offset = 0
  for (let value = valueAt(file, 0); value !== undefined; value = valueAt(file, offset)) {
    // Byte arrays in a record are views of the deserialized bytes. Without a copy they would hold the whole file.
    const record: unknown = deserialize(Buffer.from(value))
    onRecord(record)
    offset += headerBytes + value.length
  }
  if (offset === file.length) return { offset, rest: "nothing" }
  for (let next = file.indexOf(mark, offset + 1); next !== -1; next = file.indexOf(mark, next + 1)) {
    if (valueAt(file, next) !== undefined) return { offset, rest: "damage" }
  }
  return { offset, rest: "tail" }
}
