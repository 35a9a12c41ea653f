import { CollectedBytes } from "../services/CollectedBytes.ts"
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
  const collected = new CollectedBytes()
  let length = 0
  return {
    push: (chunk) => {
      length += chunk.length
      if (length <= maxBody) collected.add(chunk)
      else collected.clear()
      return chunk
    },
    flush: () => undefined,
    seen: () => ({
      // an answer that is cut or no JSON reports nothing
      reported: collected.length === 0 ? undefined : TokenUsage.read(family, parse(collected.whole().toString("utf8"))),
      guessedOutput: Math.ceil(length / 4)
    })
  }
}

/** A JSON answer of which nothing is read: only its length is known. */
export const untakenJson = (length: number): UsageTap => ({
  ...blind,
  seen: () => ({ reported: undefined, guessedOutput: Math.ceil(length / 4) })
})

const newline = 0x0a
const carriageReturn = 0x0d
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
  const begun = new CollectedBytes()
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
          if (length <= maxLine) {
            begun.add(chunk.subarray(from, end))
            line(begun.take(), 0, length)
          }
          begun.clear()
          begunLength = 0
        }
        from = end + 1
      }
      if (from < chunk.length) {
        begunLength += chunk.length - from
        // past the bound only the length is kept, to know where the line ends
        if (begunLength <= maxLine) begun.add(chunk.subarray(from))
        else begun.clear()
      }
      return chunk
    },
    flush: () => {
      // a stream may end without a last line break
      if (begun.length > 0) line(begun.take(), 0, begunLength)
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
  /** What came of an event that is not complete. */
  const begun = new CollectedBytes()
  const ends = eventEnds()
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
      const out: Array<Buffer> = []
      let from = 0
      for (let end = ends(chunk, from); end !== -1; end = ends(chunk, from)) {
        const rest = chunk.subarray(from, end)
        if (passing) out.push(rest)
        else {
          begun.add(rest)
          const whole = begun.take()
          const kept = whole.length > maxEvent ? whole : event(whole)
          if (kept !== undefined) out.push(kept)
        }
        passing = false
        from = end
      }
      const rest = chunk.subarray(from)
      if (passing) out.push(rest)
      else {
        begun.add(rest)
        if (begun.length > maxEvent) {
          passing = true
          out.push(begun.take())
        }
      }
      return out.length === 0 ? undefined : out.length === 1 ? out[0] : Buffer.concat(out)
    },
    flush: () => (begun.length === 0 ? undefined : event(begun.take())),
    seen: () => ({ reported, guessedOutput: Math.max(0, dataLines - 1) })
  }
}

/**
 * Finds the ends of a stream's events, however it is cut: the index after the blank line that ends the event, in the
 * chunk that is given next or the rest of one, or -1. An event has a line before the blank one.
 */
const eventEnds = (): ((chunk: Buffer, from: number) => number) => {
  /** Line breaks in the event so far, and bytes of its unfinished line. */
  let breaks = 0
  let line = 0
  let last = 0
  return (chunk, from) => {
    for (let start = from; start < chunk.length; ) {
      const found = chunk.indexOf(newline, start)
      const end = found === -1 ? chunk.length : found
      line += end - start
      if (end > start) last = chunk[end - 1]!
      if (found === -1) return -1
      const blank = line === 0 || (line === 1 && last === carriageReturn)
      const ended = blank && breaks > 0
      breaks = ended ? 0 : breaks + 1
      line = 0
      start = end + 1
      if (ended) return start
    }
    return -1
  }
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
