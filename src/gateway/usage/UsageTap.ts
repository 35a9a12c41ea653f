import { carriageReturn, LineScanner, lineFeed } from "../../http/SseLines.ts"
import * as JsonBounds from "../../policy/facts/JsonBounds.ts"
import * as JsonMembers from "../../policy/facts/JsonMembers.ts"
import type { Family } from "../../policy/routes/CanonicalRoute.ts"
import { CollectedBytes } from "../../services/CollectedBytes.ts"
import { TailBuffer } from "../../services/TailBuffer.ts"
import type { ResponseReader } from "./ResponseReader.ts"
import * as StreamTokenCounter from "./StreamTokenCounter.ts"
import * as TokenUsage from "./TokenUsage.ts"
import * as TrailingUsage from "./TrailingUsage.ts"

export interface ObservedUsage {
  readonly reported: TokenUsage.ReportedUsage | undefined
  /** `undefined` if the response contains no text to count, such as a compressed body or an image. */
  readonly estimatedOutput: number | undefined
}

/** Reads token usage from a response on its way to the client. `undefined` means that no bytes can be sent yet. */
export interface UsageTap {
  readonly push: (chunk: Buffer) => Buffer | undefined
  /** Returns the bytes that were held back. Call it once, at the end. */
  readonly flush: () => Buffer | undefined
  readonly observed: () => ObservedUsage
  /** Returns the complete response. Returns `undefined` if the response was too long to keep. */
  readonly collectedBody?: () => Buffer | undefined
}

export const passthrough: UsageTap = {
  push: (chunk) => chunk,
  flush: () => undefined,
  observed: () => ({ reported: undefined, estimatedOutput: undefined })
}

/** Reads the usage of a JSON response: from the complete body, or from the end of a body longer than `maxBody`. */
export const json = (family: Family, maxBody: number, reader?: ResponseReader): UsageTap => {
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
          : collected.length === 0
            ? undefined
            : usageOfBody(family, collected.toBuffer(), reader),
      estimatedOutput: Math.ceil(length / 4)
    })
  }
}

const usageOfBody = (
  family: Family,
  body: Buffer,
  reader: ResponseReader | undefined
): TokenUsage.ReportedUsage | undefined =>
  reader !== undefined && body.length <= maxReadBytes
    ? readUsage(family, body, reader)
    : (TrailingUsage.readWhole(family, body) ?? readUsage(family, body))

/** A longer response is not shown to a `ResponseReader`, because parsing it only for that would take too long. */
const maxReadBytes = 65_536

const takeTail = (collected: CollectedBytes): TailBuffer => {
  const last = new TailBuffer(TrailingUsage.tailBytes)
  last.add(collected.take())
  return last
}

export const unreadJson = (length: number): UsageTap => ({
  ...passthrough,
  observed: () => ({ reported: undefined, estimatedOutput: Math.ceil(length / 4) })
})

const usageKey = Buffer.from('"usage"')
const dataField = Buffer.from("data:")
/** In latin1. A byte order mark may precede the first line of a stream. */
const dataLine = /^(?:\xef\xbb\xbf)?data:/

const countText = (
  text: StreamTokenCounter.StreamTokenCounter,
  event: Buffer,
  reader: ResponseReader | undefined
): void =>
  new LineScanner().scan(event, (bytes, from, end) => {
    if (!startsWithAt(bytes, from, dataField)) return
    const line = bytes.subarray(from, end)
    text.addLine(line)
    reader?.onEvent(line)
  })

/** Reads the usage of an event stream. For speed it parses only lines with a `"usage"` object. */
export const events = (family: Family, maxLine: number, reader?: ResponseReader): UsageTap => {
  let reported: TokenUsage.ReportedUsage | undefined
  const text = StreamTokenCounter.make()
  const lines = new LineScanner()
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
    reader?.onEvent(field)
    report(readLine(family, field, reader))
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
      lines.scan(chunk, onPart)
      return chunk
    },
    flush: () => {
      // The last line of a stream may lack a line break.
      if (pendingLength > 0) endLine()
      return undefined
    },
    observed: () => ({ reported, estimatedOutput: text.tokens() })
  }
}

/**
 * Reads usage figures that only the gateway requested. Drops the event that carries only usage. Removes `"usage":null`
 * from other events. Each event is held until it is complete, unless it is longer than `maxEvent`.
 */
export const hidingUsage = (family: Family, maxEvent: number, reader?: ResponseReader): UsageTap => {
  let reported: TokenUsage.ReportedUsage | undefined
  const text = StreamTokenCounter.make()
  const pending = new CollectedBytes()
  const scanner = new LineScanner()
  let isBlankLine = true
  let isEmpty = true
  /** The last chunk ended with the carriage return of a blank line. A line feed that follows belongs to that event. */
  let endedAtReturn = false
  let isLastKept = true
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
    countText(text, bytes, reader)
    if (bytes.indexOf(usageKey) === -1) return bytes
    // In latin1 each byte is one character, so the forwarded bytes stay unchanged.
    const lines = bytes.toString("latin1").split(/(\r\n|\n|\r)/)
    const at = lines.findIndex((text) => dataLine.test(text))
    const line = lines[at]
    if (line === undefined) return bytes
    const valueStart = line.indexOf(":") + 1
    const json = line.slice(valueStart)
    if (JsonBounds.isExcessive(bytes)) {
      report(readEitherEnd(family, bytes))
      return bytes
    }
    const parsed = TrailingUsage.parse(json)
    if (!TokenUsage.isObject(parsed)) return bytes
    reader?.onJson(parsed)
    report(TokenUsage.read(family, parsed))
    const { choices, usage } = parsed
    if (TokenUsage.isObject(usage)) return Array.isArray(choices) && choices.length === 0 ? undefined : bytes
    if (usage !== null) return bytes
    lines[at] = line.slice(0, valueStart) + JsonMembers.without(json, (key) => key === "usage")
    return Buffer.from(lines.join(""), "latin1")
  }

  const endEvent = (rest: Buffer, out: Array<Buffer>) => {
    isLastKept = true
    if (tail !== undefined) out.push(passOversized(rest))
    else {
      pending.add(rest)
      const whole = pending.take()
      const kept = whole.length > maxEvent ? passOversized(whole) : withoutUsage(whole)
      isLastKept = kept !== undefined
      if (kept !== undefined) out.push(kept)
    }
    endOversized()
  }

  return {
    push: (chunk) => {
      const out: Array<Buffer> = []
      let from = 0
      if (endedAtReturn && chunk[0] === lineFeed) {
        if (isLastKept) out.push(chunk.subarray(0, 1))
        from = 1
      }
      if (chunk.length > 0) endedAtReturn = false
      scanner.scan(chunk, (_, start, end, isLineEnd, next) => {
        if (end > start) isBlankLine = false
        if (!isLineEnd) return
        // A blank line ends the event, unless it is the event's first line.
        const isEnd = isBlankLine && !isEmpty
        isEmpty = isEnd
        isBlankLine = true
        if (!isEnd) return
        endEvent(chunk.subarray(from, next), out)
        from = next
        endedAtReturn = next === chunk.length && chunk[end] === carriageReturn && next === end + 1
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

/** For so few bytes a loop is five times as fast as `compare`. */
const startsWithAt = (bytes: Buffer, from: number, part: Buffer): boolean => {
  for (let i = 0; i < part.length; i++) if (bytes[from + i] !== part[i]) return false
  return true
}

const readUsage = (family: Family, json: Buffer, reader?: ResponseReader): TokenUsage.ReportedUsage | undefined => {
  if (JsonBounds.isExcessive(json)) return readEitherEnd(family, json)
  const parsed = TrailingUsage.parse(json.toString("utf8"))
  reader?.onJson(parsed)
  return TokenUsage.read(family, parsed)
}

const readEitherEnd = (family: Family, json: Buffer): TokenUsage.ReportedUsage | undefined =>
  TrailingUsage.readTail(family, json.subarray(Math.max(0, json.length - TrailingUsage.tailBytes))) ??
  TrailingUsage.readTail(family, json.subarray(0, TrailingUsage.tailBytes))

const readLine = (
  family: Family,
  bytes: Buffer,
  reader: ResponseReader | undefined
): TokenUsage.ReportedUsage | undefined => {
  // The first `"usage"` may be part of quoted text, so each occurrence is tried.
  for (let at = bytes.indexOf(usageKey); at !== -1; at = bytes.indexOf(usageKey, at + 1)) {
    if (TrailingUsage.objectStart(bytes, at + usageKey.length) !== undefined) {
      return readUsage(family, bytes.subarray(dataField.length), reader)
    }
  }
  return undefined
}
