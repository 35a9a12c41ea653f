import { eachPart, LineLength } from "../../http/SseLines.ts"
import * as JsonBounds from "../../policy/facts/JsonBounds.ts"
import * as JsonMembers from "../../policy/facts/JsonMembers.ts"
import type { Family } from "../../policy/routes/CanonicalRoute.ts"
import { CollectedBytes } from "../../services/CollectedBytes.ts"
import { LastBytes } from "../../services/LastBytes.ts"
import * as EventText from "./EventText.ts"
import * as LateUsage from "./LateUsage.ts"
import * as TokenUsage from "./TokenUsage.ts"

/** What was seen of an answer when it ended, whole or cut. */
export interface Seen {
  readonly reported: TokenUsage.Reported | undefined
  /**
   * Output tokens as far as one can guess from the text that passed. `undefined`: something passed that shows none, such
   * as a compressed answer or a picture.
   */
  readonly guessedOutput: number | undefined
}

/** Bytes of an answer on their way to the client. `undefined`: nothing to send now. */
export interface UsageTap {
  readonly push: (chunk: Buffer) => Buffer | undefined
  /** What was still held back; call it once, at the end. */
  readonly flush: () => Buffer | undefined
  readonly seen: () => Seen
  /** The answer, of which this holds all: nobody else has to collect it. `undefined`: it is too long for that. */
  readonly answer?: () => Buffer | undefined
}

/** For an answer that shows nothing to a reader, or has none. */
export const blind: UsageTap = {
  push: (chunk) => chunk,
  flush: () => undefined,
  seen: () => ({ reported: undefined, guessedOutput: undefined })
}

/**
 * A JSON answer: chunks pass as they come; the usage is read at the end, out of all of it, or out of its last bytes
 * where it is longer than `maxBody`.
 */
export const json = (family: Family, maxBody: number): UsageTap => {
  const collected = new CollectedBytes()
  let tail: LastBytes | undefined
  let length = 0
  return {
    push: (chunk) => {
      length += chunk.length
      if (length <= maxBody) collected.add(chunk)
      else {
        tail ??= lastOf(collected)
        tail.add(chunk)
      }
      return chunk
    },
    flush: () => undefined,
    answer: () => (tail === undefined ? collected.whole() : undefined),
    seen: () => ({
      reported:
        tail !== undefined
          ? LateUsage.read(family, tail.whole())
          : // an answer that is cut or no JSON reports nothing
            collected.length === 0
            ? undefined
            : ofWhole(family, collected.whole()),
      guessedOutput: Math.ceil(length / 4)
    })
  }
}

const ofWhole = (family: Family, answer: Buffer): TokenUsage.Reported | undefined =>
  LateUsage.ofWhole(family, answer) ?? read(family, answer)

/** The last bytes of what was collected, which is collected no longer. */
const lastOf = (collected: CollectedBytes): LastBytes => {
  const last = new LastBytes(LateUsage.tailBytes)
  last.add(collected.take())
  return last
}

/** A JSON answer of which nothing is read: only its length is known. */
export const untakenJson = (length: number): UsageTap => ({
  ...blind,
  seen: () => ({ reported: undefined, guessedOutput: Math.ceil(length / 4) })
})

const usageKey = Buffer.from('"usage"')
const dataField = Buffer.from("data:")

const countText = (text: EventText.EventText, event: Buffer): void =>
  eachPart(event, (_, from, end) => {
    if (holdsAt(event, from, dataField)) text.line(event.subarray(from, end))
  })

/**
 * A stream of events whose bytes pass untouched. Only lines that hold a `"usage"` object are parsed, and only a line
 * that is split over chunks is copied. Of a line longer than `maxLine` only the end is read.
 */
export const events = (family: Family, maxLine: number): UsageTap => {
  let reported: TokenUsage.Reported | undefined
  const text = EventText.count()
  /** What came of a line that is not complete, and the end of one that is too long. */
  const begun = new CollectedBytes()
  let begunLength = 0
  let long: LastBytes | undefined

  const report = (found: TokenUsage.Reported | undefined) => {
    if (found !== undefined) reported = TokenUsage.merge(reported, found)
  }

  const line = (bytes: Buffer, from: number, end: number) => {
    if (!holdsAt(bytes, from, dataField)) return
    const field = bytes.subarray(from, end)
    text.line(field)
    report(readLine(family, field))
  }

  const add = (bytes: Buffer) => {
    begunLength += bytes.length
    if (begunLength <= maxLine) begun.add(bytes)
    else {
      long ??= lastOf(begun)
      long.add(bytes)
    }
  }

  const endLine = () => {
    if (long === undefined) line(begun.take(), 0, begunLength)
    else {
      text.unread(begunLength)
      report(LateUsage.read(family, long.whole()))
      long = undefined
    }
    begunLength = 0
  }

  const onPart = (bytes: Buffer, from: number, end: number, isEnd: boolean) => {
    if (isEnd && begunLength === 0 && end - from <= maxLine) return line(bytes, from, end)
    add(bytes.subarray(from, end))
    if (isEnd) endLine()
  }

  return {
    push: (chunk) => {
      eachPart(chunk, onPart)
      return chunk
    },
    flush: () => {
      // a stream may end without a last line break
      if (begunLength > 0) endLine()
      return undefined
    },
    seen: () => ({ reported, guessedOutput: text.tokens() })
  }
}

/**
 * A family A stream for which the gateway asked for usage and the client did not: the event that carries only usage is
 * left out, and `"usage":null` is taken out of the others, so that the client sees the stream it would have had. Whole
 * events are held until they are complete; one longer than `maxEvent` passes as it comes, and only its end is read.
 */
export const hidingUsage = (family: Family, maxEvent: number): UsageTap => {
  let reported: TokenUsage.Reported | undefined
  const text = EventText.count()
  /** What came of an event that is not complete. */
  const begun = new CollectedBytes()
  const lineLength = new LineLength()
  let isEmpty = true
  /** The end of an event that was too long to hold, and how long it has become. */
  let long: LastBytes | undefined
  let longLength = 0

  const report = (found: TokenUsage.Reported | undefined) => {
    if (found !== undefined) reported = TokenUsage.merge(reported, found)
  }

  const passLong = (bytes: Buffer): Buffer => {
    long ??= new LastBytes(LateUsage.tailBytes)
    long.add(bytes)
    longLength += bytes.length
    return bytes
  }

  const endLong = () => {
    if (long === undefined) return
    text.unread(longLength)
    report(LateUsage.read(family, long.whole()))
    long = undefined
    longLength = 0
  }

  const event = (bytes: Buffer): Buffer | undefined => {
    countText(text, bytes)
    if (bytes.indexOf(usageKey) === -1) return bytes
    // byte for character: what is sent on is what came, whatever it encodes
    const lines = bytes.toString("latin1").split("\n")
    const at = lines.findIndex((text) => text.startsWith("data:"))
    const line = lines[at]
    if (line === undefined) return bytes
    const json = line.slice("data:".length)
    if (JsonBounds.isExcessive(bytes)) {
      report(atEitherEnd(family, bytes))
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
    if (long !== undefined) out.push(passLong(rest))
    else {
      begun.add(rest)
      const whole = begun.take()
      const kept = whole.length > maxEvent ? passLong(whole) : event(whole)
      if (kept !== undefined) out.push(kept)
    }
    endLong()
  }

  return {
    push: (chunk) => {
      const out: Array<Buffer> = []
      let from = 0
      eachPart(chunk, (_, start, end, isEnd) => {
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
      if (long !== undefined) out.push(passLong(rest))
      else {
        begun.add(rest)
        if (begun.length > maxEvent) out.push(passLong(begun.take()))
      }
      return out.length === 0 ? undefined : out.length === 1 ? out[0] : Buffer.concat(out)
    },
    flush: () => {
      endLong()
      return begun.length === 0 ? undefined : event(begun.take())
    },
    seen: () => ({ reported, guessedOutput: text.tokens() })
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

/** All of a JSON text, or of one that takes too long to parse the usage at its end or its beginning. */
const read = (family: Family, json: Buffer): TokenUsage.Reported | undefined =>
  JsonBounds.isExcessive(json) ? atEitherEnd(family, json) : TokenUsage.read(family, parse(json.toString("utf8")))

const atEitherEnd = (family: Family, json: Buffer): TokenUsage.Reported | undefined =>
  LateUsage.read(family, json.subarray(Math.max(0, json.length - LateUsage.tailBytes))) ??
  LateUsage.read(family, json.subarray(0, LateUsage.tailBytes))

const readLine = (family: Family, bytes: Buffer): TokenUsage.Reported | undefined => {
  // the name may also be a client's word that is echoed
  for (let at = bytes.indexOf(usageKey); at !== -1; at = bytes.indexOf(usageKey, at + 1)) {
    if (LateUsage.objectAfter(bytes, at + usageKey.length) !== undefined) {
      return read(family, bytes.subarray(dataField.length))
    }
  }
  return undefined
}
