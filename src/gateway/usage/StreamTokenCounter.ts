import { backslash, colon, openBrace, openBracket, quote } from "../../policy/facts/JsonScan.ts"

export interface StreamTokenCounter {
  readonly addLine: (line: Buffer) => void
  readonly addUnreadLine: (length: number) => void
  readonly tokens: () => number
}

/**
 * Estimates the output tokens of a stream: one per four bytes of text, and at least one per event after the first. Text
 * is the value of members such as `content`. Without such members, all strings count. Streams may repeat the whole text
 * at the end. Events without `delta` therefore count only if no event has one. Parsing the events would be much slower.
 */
export const make = (): StreamTokenCounter => {
  let events = 0
  let deltaBytes = 0
  let otherTextBytes = 0
  let stringBytes = 0

  const scan = (line: Buffer, from: number) => {
    const end = line.length
    let isDelta = false
    let isText = false
    let text = 0
    for (let at = from; at < end; at++) {
      if (line[at] !== quote) continue
      const start = at + 1
      for (at = start; at < end && line[at] !== quote; at++) if (line[at] === backslash) at++
      let next = skipSpace(line, at + 1)
      if (line[next] === colon) {
        next = skipSpace(line, next + 1)
        isDelta ||= matchesAt(line, start, at, deltaName)
        isText = line[next] === quote && isTextName(line, start, at)
        at = next - 1
      } else {
        stringBytes += at - start
        if (isText) text += at - start
        isText = false
      }
    }
    if (isDelta) deltaBytes += text
    else otherTextBytes += text
  }

  return {
    addLine: (line) => {
      events++
      const from = line.indexOf(deltaMember)
      if (from !== -1) scan(line, from)
      else if (deltaBytes === 0) {
        const valueStart = skipSpace(line, fieldLength)
        if (line[valueStart] === openBrace || line[valueStart] === openBracket) scan(line, valueStart)
        else stringBytes += line.length - valueStart
      }
    },
    addUnreadLine: (length) => {
      events++
      otherTextBytes += length
    },
    tokens: () => Math.max(0, events - 1, Math.ceil((deltaBytes || otherTextBytes || stringBytes) / 4))
  }
}

const fieldLength = "data:".length
const deltaMember = Buffer.from('"delta"')

const skipSpace = (line: Buffer, from: number): number => {
  let at = from
  while (line[at]! <= space) at++
  return at
}

const space = 0x20

const deltaName = Buffer.from("delta")

const textNames: Array<ReadonlyArray<Buffer> | undefined> = []
for (const name of [
  "text",
  "delta",
  "content",
  "refusal",
  "thinking",
  "arguments",
  "reasoning",
  "partial_json",
  "reasoning_content"
]) {
  textNames[name.length] = [...(textNames[name.length] ?? []), Buffer.from(name)]
}

const isTextName = (bytes: Buffer, from: number, end: number): boolean => {
  const names = textNames[end - from]
  if (names === undefined) return false
  for (const name of names) if (matchesAt(bytes, from, end, name)) return true
  return false
}

const matchesAt = (bytes: Buffer, from: number, end: number, name: Buffer): boolean => {
  if (end - from !== name.length) return false
  for (let i = 0; i < name.length; i++) if (bytes[from + i] !== name[i]) return false
  return true
}
