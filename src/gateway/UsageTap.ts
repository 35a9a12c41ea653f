import type { Family } from "./model/CanonicalRoute.ts"
import * as JsonMembers from "./model/JsonMembers.ts"
import * as TokenUsage from "./TokenUsage.ts"

/** What was seen of an answer when it ended, whole or cut. */
export interface Seen {
  readonly reported: TokenUsage.Reported | undefined
  /**
   * Output tokens as far as one can guess from what passed: one for each event of a stream, a quarter of the bytes of a
   * JSON answer.
   */
  readonly guessedOutput: number
}

/** Bytes of an answer on their way to the client. `undefined`: nothing to send now. */
export interface UsageTap {
  readonly push: (chunk: Buffer) => Buffer | undefined
  /** What was still held back; call it once, at the end. */
  readonly flush: () => Buffer | undefined
  readonly seen: () => Seen
}

/** For answers that nobody reads: nothing is looked at. */
export const blind: UsageTap = {
  push: (chunk) => chunk,
  flush: () => undefined,
  seen: () => ({ reported: undefined, guessedOutput: 0 })
}

/** A JSON answer: chunks pass as they come; the sum is read at the end, unless it is longer than `maxBody`. */
export const json = (family: Family, maxBody: number): UsageTap => {
  let chunks: Array<Buffer> = []
  let length = 0
  return {
    push: (chunk) => {
      length += chunk.length
      if (length <= maxBody) chunks.push(chunk)
      else chunks = []
      return chunk
    },
    flush: () => undefined,
    seen: () => ({
      // an answer that is cut or no JSON reports nothing
      reported: chunks.length === 0 ? undefined : TokenUsage.read(family, parse(whole(chunks).toString("utf8"))),
      guessedOutput: Math.ceil(length / 4)
    })
  }
}

/** A JSON answer of which nothing is read: only its length is known. */
export const untakenJson = (length: number): UsageTap => ({
  ...blind,
  seen: () => ({ reported: undefined, guessedOutput: Math.ceil(length / 4) })
})

const whole = (chunks: ReadonlyArray<Buffer>): Buffer => (chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))

const newline = 0x0a
const usageKey = Buffer.from('"usage"')
const dataField = Buffer.from("data:")
const laterDataField = Buffer.from("\ndata:")

/**
 * A stream of events whose bytes pass untouched. Only lines that hold a `"usage"` object are parsed, and only a line
 * that is split over chunks is copied. A line longer than `maxLine` is not read.
 */
export const events = (family: Family, maxLine: number): UsageTap => {
  let reported: TokenUsage.Reported | undefined
  let dataLines = 0
  let begun: Array<Buffer> = []
  let begunLength = 0

  const line = (bytes: Buffer, from: number, end: number) => {
    if (!holdsAt(bytes, from, dataField)) return
    dataLines++
    const found = readLine(family, bytes.subarray(from, end))
    if (found !== undefined) reported = TokenUsage.merge(reported, found)
  }

  return {
    push: (chunk) => {
      let from = 0
      for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, from)) {
        const length = begunLength + end - from
        if (begunLength === 0) {
          if (length <= maxLine) line(chunk, from, end)
        } else {
          if (length <= maxLine) line(Buffer.concat([...begun, chunk.subarray(from, end)]), 0, length)
          begun = []
          begunLength = 0
        }
        from = end + 1
      }
      if (from < chunk.length) {
        begunLength += chunk.length - from
        // past the bound only the length is kept, to know where the line ends
        if (begunLength <= maxLine) begun.push(chunk.subarray(from))
        else begun = []
      }
      return chunk
    },
    flush: () => {
      // a stream may end without a last line break
      if (begun.length > 0) line(Buffer.concat(begun), 0, begunLength)
      return undefined
    },
    seen: () => ({ reported, guessedOutput: Math.max(0, dataLines - 1) })
  }
}

/**
 * A family A stream for which the gateway asked for usage and the client did not: the event that carries only usage is
 * left out, and `"usage":null` is taken out of the others, so that the client sees the stream it would have had. Whole
 * events are held until they are complete; one longer than `maxEvent` passes as it comes.
 */
export const hidingUsage = (family: Family, maxEvent: number): UsageTap => {
  let reported: TokenUsage.Reported | undefined
  let dataLines = 0
  let pending: Buffer = empty
  /** Inside an event that was too long to hold. */
  let passing = false

  const event = (bytes: Buffer): Buffer | undefined => {
    if (holdsAt(bytes, 0, dataField) || bytes.indexOf(laterDataField) !== -1) dataLines++
    if (bytes.indexOf(usageKey) === -1) return bytes
    // byte for character: what is sent on is what came, whatever it encodes
    const lines = bytes.toString("latin1").split("\n")
    const at = lines.findIndex((text) => text.startsWith("data:"))
    const text = lines[at]
    if (text === undefined) return bytes
    const json = text.slice("data:".length)
    const parsed = parse(json)
    if (!TokenUsage.isObject(parsed)) return bytes
    const found = TokenUsage.read(family, parsed)
    if (found !== undefined) reported = TokenUsage.merge(reported, found)
    const { choices, usage } = parsed
    if (TokenUsage.isObject(usage)) return Array.isArray(choices) && choices.length === 0 ? undefined : bytes
    if (usage !== null) return bytes
    lines[at] = `data:${JsonMembers.without(json, (key) => key === "usage")}`
    return Buffer.from(lines.join("\n"), "latin1")
  }

  return {
    push: (chunk) => {
      pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk])
      const out: Array<Buffer> = []
      let from = 0
      for (let end = eventEnd(pending, from); end !== -1; end = eventEnd(pending, from)) {
        const whole = pending.subarray(from, end)
        const kept = passing || whole.length > maxEvent ? whole : event(whole)
        if (kept !== undefined) out.push(kept)
        passing = false
        from = end
      }
      pending = pending.subarray(from)
      if (passing || pending.length > maxEvent) {
        passing = true
        // the last bytes may begin the blank line that ends the event
        const hold = Math.min(3, pending.length)
        out.push(pending.subarray(0, pending.length - hold))
        pending = pending.subarray(pending.length - hold)
      }
      return out.length === 0 ? undefined : out.length === 1 ? out[0] : Buffer.concat(out)
    },
    flush: () => {
      const last = pending
      pending = empty
      if (last.length === 0) return undefined
      return passing ? last : event(last)
    },
    seen: () => ({ reported, guessedOutput: Math.max(0, dataLines - 1) })
  }
}

const empty = Buffer.alloc(0)

/** Just behind the blank line that ends the event which begins at `from`, or -1. */
const eventEnd = (bytes: Buffer, from: number): number => {
  for (let at = bytes.indexOf(newline, from); at !== -1; at = bytes.indexOf(newline, at + 1)) {
    if (bytes[at + 1] === newline) return at + 2
    if (bytes[at + 1] === 0x0d && bytes[at + 2] === newline) return at + 3
  }
  return -1
}

/** A loop: for so few bytes a call of `compare` takes five times as long. */
const holdsAt = (bytes: Buffer, from: number, part: Buffer): boolean => {
  for (let i = 0; i < part.length; i++) if (bytes[from + i] !== part[i]) return false
  return true
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const readLine = (family: Family, bytes: Buffer): TokenUsage.Reported | undefined => {
  // the name may also be a client's word that is echoed
  for (let at = bytes.indexOf(usageKey); at !== -1; at = bytes.indexOf(usageKey, at + 1)) {
    if (opensObject(bytes, at + usageKey.length)) {
      return TokenUsage.read(family, parse(bytes.toString("utf8", dataField.length)))
    }
  }
  return undefined
}

/** Whether `: {` comes next: most events of a stream say `"usage":null`, and those need no parsing. */
const opensObject = (bytes: Buffer, from: number): boolean => {
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte === 0x7b) return true
    if (byte !== 0x3a && byte > 0x20) return false
  }
  return false
}
