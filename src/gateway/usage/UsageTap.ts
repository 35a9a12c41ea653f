import { forEachLinePart, LineLength } from "../../http/SseLines.ts"
import * as JsonBounds from "../../policy/facts/JsonBounds.ts"
import * as JsonMembers from "../../policy/facts/JsonMembers.ts"
import type { Family } from "../../policy/routes/CanonicalRoute.ts"
import { CollectedBytes } from "../../services/CollectedBytes.ts"
import { TailBuffer } from "../../services/TailBuffer.ts"
import * as StreamTokenCounter from "./StreamTokenCounter.ts"
import * as TokenUsage from "./TokenUsage.ts"
import * as TrailingUsage from "./TrailingUsage.ts"

/** What was seen of an answer when it ended, whole or cut. */
export interface ObservedUsage {
  readonly reported: TokenUsage.ReportedUsage | undefined
  /**
   * Output tokens as far as one can guess from the text that passed. `undefined`: something passed that shows none, such
   * as a compressed answer or a picture.
   */
  readonly estimatedOutput: number | undefined
}

/** Bytes of an answer on their way to the client. `undefined`: nothing to send now. */
export interface UsageTap {
  readonly push: (chunk: Buffer) => Buffer | undefined
  /** What was still held back; call it once, at the end. */
  readonly flush: () => Buffer | undefined
  readonly observed: () => ObservedUsage
  /** The answer, of which this holds all: nobody else has to collect it. `undefined`: it is too long for that. */
  readonly collectedBody?: () => Buffer | undefined
}

/** For an answer that shows nothing to a reader, or has none. */
export const passthrough: UsageTap = {
  push: (chunk) => chunk,
  flush: () => undefined,
  observed: () => ({ reported: undefined, estimatedOutput: undefined })
}

/**
 * A JSON answer: chunks pass as they come; the usage is read at the end, out of all of it, or out of its last bytes
 * where it is longer than `maxBody`.
 */
export const json = (family: Family, maxBody: number): UsageTap => {
  const collected = new CollectedBytes()
  let tail: TailBuffer | undefined
  let length = 0
  return {
    push: (chunk) => {
      length += chunk.length
      if (length <= maxBody) collected.add(chunk)
      else {
        tail ??= takeTail(collected)
        tail.add(chunk)
      }
      return chunk
    },
    flush: () => undefined,
    collectedBody: () => (tail === undefined ? collected.toBuffer() : undefined),
    observed: () => ({
      reported:
        tail !== undefined
          ? TrailingUsage.readTail(family, tail.toBuffer())
          : // an answer that is cut or no JSON reports nothing
            collected.length === 0
            ? undefined
            : usageOfBody(family, collected.toBuffer()),
      estimatedOutput: Math.ceil(length / 4)
    })
  }
}

const usageOfBody = (family: Family, answer: Buffer): TokenUsage.ReportedUsage | undefined =>
  TrailingUsage.readWhole(family, answer) ?? readUsage(family, answer)

/** The last bytes of what was collected, which is collected no longer. */
const takeTail = (collected: CollectedBytes): TailBuffer => {
  const last = new TailBuffer(TrailingUsage.tailBytes)
  last.add(collected.take())
  return last
}

/** A JSON answer of which nothing is read: only its length is known. */
export const unreadJson = (length: number): UsageTap => ({
  ...passthrough,
  observed: () => ({ reported: undefined, estimatedOutput: Math.ceil(length / 4) })
})

const usageKey = Buffer.from('"usage"')
const dataField = Buffer.from("data:")

const countText = (text: StreamTokenCounter.StreamTokenCounter, event: Buffer): void =>
  forEachLinePart(event, (_, from, end) => {
    if (startsWithAt(event, from, dataField)) text.addLine(event.subarray(from, end))
  })

/**
 * A stream of events whose bytes pass untouched. Only lines that hold a `"usage"` object are parsed, and only a line
 * that is split over chunks is copied. Of a line longer than `maxLine` only the end is read.
 */
export const events = (family: Family, maxLine: number): UsageTap => {
  let reported: TokenUsage.ReportedUsage | undefined
  const text = StreamTokenCounter.make()
  /** What came of a line that is not complete, and the end of one that is too long. */
  const pending = new CollectedBytes()
  let pendingLength = 0
  let tail: TailBuffer | undefined

  const report = (found: TokenUsage.ReportedUsage | undefined) => {
    if (found !== undefined) reported = TokenUsage.merge(reported, found)
  }

  const onLine = (bytes: Buffer, from: number, end: number) => {
    if (!startsWithAt(bytes, from, dataField)) return
    const field = bytes.subarray(from, end)
    text.addLine(field)
    report(readLine(family, field))
  }

  const add = (bytes: Buffer) => {
    pendingLength += bytes.length
    if (pendingLength <= maxLine) pending.add(bytes)
    else {
      tail ??= takeTail(pending)
      tail.add(bytes)
    }
  }

  const endLine = () => {
    if (tail === undefined) onLine(pending.take(), 0, pendingLength)
    else {
      text.addUnreadLine(pendingLength)
      report(TrailingUsage.readTail(family, tail.toBuffer()))
      tail = undefined
    }
    pendingLength = 0
  }

  const onPart = (bytes: Buffer, from: number, end: number, isEnd: boolean) => {
    if (isEnd && pendingLength === 0 && end - from <= maxLine) return onLine(bytes, from, end)
    add(bytes.subarray(from, end))
    if (isEnd) endLine()
  }

  return {
    push: (chunk) => {
      forEachLinePart(chunk, onPart)
      return chunk
    },
    flush: () => {
      // a stream may end without a last line break
      if (pendingLength > 0) endLine()
      return undefined
    },
    observed: () => ({ reported, estimatedOutput: text.tokens() })
  }
}

/**
 * A family A stream for which the gateway asked for usage and the client did not: the event that carries only usage is
 * left out, and `"usage":null` is taken out of the others, so that the client sees the stream it would have had. Whole
 * events are held until they are complete; one longer than `maxEvent` passes as it comes, and only its end is read.
 */
export const hidingUsage = (family: Family, maxEvent: number): UsageTap => {
  let reported: TokenUsage.ReportedUsage | undefined
  const text = StreamTokenCounter.make()
  /** What came of an event that is not complete. */
  const pending = new CollectedBytes()
  const lineLength = new LineLength()
  let isEmpty = true
  /** The end of an event that was too long to hold, and how long it has become. */
  let tail: TailBuffer | undefined
  let tailedLength = 0

  const report = (found: TokenUsage.ReportedUsage | undefined) => {
    if (found !== undefined) reported = TokenUsage.merge(reported, found)
  }

  const passOversized = (bytes: Buffer): Buffer => {
    tail ??= new TailBuffer(TrailingUsage.tailBytes)
    tail.add(bytes)
    tailedLength += bytes.length
    return bytes
  }

  const endOversized = () => {
    if (tail === undefined) return
    text.addUnreadLine(tailedLength)
    report(TrailingUsage.readTail(family, tail.toBuffer()))
    tail = undefined
    tailedLength = 0
  }

  const withoutUsage = (bytes: Buffer): Buffer | undefined => {
    countText(text, bytes)
    if (bytes.indexOf(usageKey) === -1) return bytes
    // byte for character: what is sent on is what came, whatever it encodes
    const lines = bytes.toString("latin1").split("\n")
    const at = lines.findIndex((text) => text.startsWith("data:"))
    const line = lines[at]
    if (line === undefined) return bytes
    const json = line.slice("data:".length)
    if (JsonBounds.isExcessive(bytes)) {
      report(readEitherEnd(family, bytes))
      return bytes
    }
    const parsed = parse(json)
    if (!TokenUsage.isObject(parsed)) return bytes
    report(TokenUsage.read(family, parsed))
    const { choices, usage } = parsed
    if (TokenUsage.isObject(usage)) return Array.isArray(choices) && choices.length === 0 ? undefined : bytes
    if (usage !== null) return bytes
    lines[at] = `data:${JsonMembers.without(json, (key) => key === "usage")}`
    return Buffer.from(lines.join("\n"), "latin1")
  }

  /** With the last bytes of an event. */
  const endEvent = (rest: Buffer, out: Array<Buffer>) => {
    if (tail !== undefined) out.push(passOversized(rest))
    else {
      pending.add(rest)
      const whole = pending.take()
      const kept = whole.length > maxEvent ? passOversized(whole) : withoutUsage(whole)
      if (kept !== undefined) out.push(kept)
    }
    endOversized()
  }

  return {
    push: (chunk) => {
      const out: Array<Buffer> = []
      let from = 0
      forEachLinePart(chunk, (_, start, end, isEnd) => {
        lineLength.add(chunk, start, end)
        if (!isEnd) return
        // an event has a line before the blank one
        const isEvent = lineLength.isBlank && !isEmpty
        isEmpty = isEvent
        lineLength.reset()
        if (!isEvent) return
        endEvent(chunk.subarray(from, end + 1), out)
        from = end + 1
      })
      const rest = chunk.subarray(from)
      if (tail !== undefined) out.push(passOversized(rest))
      else {
        pending.add(rest)
        if (pending.length > maxEvent) out.push(passOversized(pending.take()))
      }
      return out.length === 0 ? undefined : out.length === 1 ? out[0] : Buffer.concat(out)
    },
    flush: () => {
      endOversized()
      return pending.length === 0 ? undefined : withoutUsage(pending.take())
    },
    observed: () => ({ reported, estimatedOutput: text.tokens() })
  }
}

/** A loop: for so few bytes a call of `compare` takes five times as long. */
const startsWithAt = (bytes: Buffer, from: number, part: Buffer): boolean => {
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

/** All of a JSON text, or of one that takes too long to parse the usage at its end or its beginning. */
const readUsage = (family: Family, json: Buffer): TokenUsage.ReportedUsage | undefined =>
  JsonBounds.isExcessive(json) ? readEitherEnd(family, json) : TokenUsage.read(family, parse(json.toString("utf8")))

const readEitherEnd = (family: Family, json: Buffer): TokenUsage.ReportedUsage | undefined =>
  TrailingUsage.readTail(family, json.subarray(Math.max(0, json.length - TrailingUsage.tailBytes))) ??
  TrailingUsage.readTail(family, json.subarray(0, TrailingUsage.tailBytes))

const readLine = (family: Family, bytes: Buffer): TokenUsage.ReportedUsage | undefined => {
  // the name may also be a client's word that is echoed
  for (let at = bytes.indexOf(usageKey); at !== -1; at = bytes.indexOf(usageKey, at + 1)) {
    if (TrailingUsage.objectStart(bytes, at + usageKey.length) !== undefined) {
      return readUsage(family, bytes.subarray(dataField.length))
    }
  }
  return undefined
}
