/** One event of an event stream, or a part of the stream that is none, such as the bytes after the last event. */
export interface SseEvent {
  /** The lines of the event as received, with their line ends. Without the blank line that ends the event. */
  readonly lines: ReadonlyArray<SseLine>
  /** The blank line, as received; empty if the stream ended within the event. */
  readonly end: string
}

/** A line of an event. `value` lacks the one space that may follow the colon. A comment has the field "". */
export interface SseLine {
  readonly raw: string
  readonly field: string
  readonly value: string
  /** `\n`, `\r\n` or `\r`; empty if the stream ended within the line. */
  readonly lineEnd: string
}

/** Characters. The last event of OpenAI's responses repeats the whole response. */
export const maxEventLength = 16_777_216

/** The event that has not ended exceeds the maximum size. No bytes are lost: `rest` returns what there is of it. */
export class EventTooLarge extends Error {}

/**
 * Splits the bytes of a stream into events. The parts of one event may arrive in any pieces, also within a character or
 * between the two bytes of a line end. The whole text of all events equals the text of the bytes.
 */
export class SseSplitter {
  readonly #maxLength: number
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true })
  /** The parts of the line that has not ended. They are joined once, so that a line in many pieces takes linear time. */
  #parts: Array<string> = []
  #lines: Array<SseLine> = []
  /** The length of the lines and parts. */
  #length = 0
  /** The last piece ended with a carriage return, which may be the first half of a line end. */
  #isReturnPending = false

  constructor(maxLength = maxEventLength) {
    this.#maxLength = maxLength
  }

  /** Returns the events that these bytes complete. Throws `EventTooLarge` if they complete none. */
  push(bytes: Uint8Array): ReadonlyArray<SseEvent> {
    return this.#split(this.decode(bytes), false)
  }

  /** Returns the rest of the stream, which lacks the blank line at its end. */
  end(): ReadonlyArray<SseEvent> {
    const events = this.#split(this.#decoder.decode(), true)
    if (this.#parts.length > 0) this.#lines.push(lineOf(this.#parts.join(""), ""))
    const last = this.#lines
    this.#clear()
    return last.length === 0 ? events : [...events, { lines: last, end: "" }]
  }

  /** Returns the text of the event that has not ended. Later bytes are no longer split but go through `decode`. */
  rest(): string {
    const lines = this.#lines.map(({ lineEnd, raw }) => raw + lineEnd).join("")
    const rest = lines + this.#parts.join("") + (this.#isReturnPending ? "\r" : "")
    this.#clear()
    return rest
  }

  /** Returns the text of bytes after `rest`. They may begin within a character. */
  decode(bytes: Uint8Array): string {
    return this.#decoder.decode(bytes, { stream: true })
  }

  #split(piece: string, isLast: boolean): ReadonlyArray<SseEvent> {
    const events: Array<SseEvent> = []
    const received = this.#isReturnPending ? `\r${piece}` : piece
    this.#isReturnPending = !isLast && received.endsWith("\r")
    const text = this.#isReturnPending ? received.slice(0, -1) : received
    let from = 0
    for (const { 0: lineEnd, index } of text.matchAll(/\r\n|\n|\r/g)) {
      const event = this.#endLine(text.slice(from, index), lineEnd)
      if (event !== undefined) events.push(event)
      from = index + lineEnd.length
    }
    if (from < text.length) {
      this.#parts.push(text.slice(from))
      this.#length += text.length - from
    }
    // Complete events are returned first, because the error would lose them.
    if (events.length === 0 && this.#length > this.#maxLength) throw new EventTooLarge()
    return events
  }

  /** Returns the event if this line is the blank line at its end. */
  #endLine(rest: string, lineEnd: string): SseEvent | undefined {
    const line = this.#parts.length === 0 ? rest : this.#parts.join("") + rest
    this.#parts = []
    if (line !== "") {
      this.#length += rest.length + lineEnd.length + lineCost
      this.#lines.push(lineOf(line, lineEnd))
      return undefined
    }
    const event = { lines: this.#lines, end: lineEnd }
    this.#clear()
    return event
  }

  #clear(): void {
    this.#parts = []
    this.#lines = []
    this.#length = 0
  }
}

/** An event of many short lines takes more memory than their text. */
const lineCost = 64

/** A client ignores a byte order mark at the beginning of the stream, and some clients do so in each line. */
const lineOf = (raw: string, lineEnd: string): SseLine => {
  const start = raw.startsWith("\ufeff") ? 1 : 0
  const colon = raw.indexOf(":")
  if (colon === -1) {
    const field = raw.slice(start)
    return fields.has(field) ? { raw, field, value: "", lineEnd } : { raw, field: "", value: raw, lineEnd }
  }
  // A client ignores other fields, as it ignores comments. Their names may hold text, too.
  if (!fields.has(raw.slice(start, colon))) return { raw, field: "", value: raw, lineEnd }
  const valueStart = raw.charAt(colon + 1) === " " ? colon + 2 : colon + 1
  return { raw, field: raw.slice(start, colon), value: raw.slice(valueStart), lineEnd }
}

const fields: ReadonlySet<string> = new Set(["", "data", "event", "id", "retry"])

/** Returns the data of an event as a client reads it; `undefined` if the event has none. */
export const dataOf = ({ lines }: SseEvent): string | undefined => {
  const data = lines.filter(({ field }) => field === "data")
  return data.length === 0 ? undefined : data.map(({ value }) => value).join("\n")
}

export const nameOf = ({ lines }: SseEvent): string | undefined =>
  lines.findLast(({ field }) => field === "event")?.value

export const textOf = ({ end, lines }: SseEvent): string =>
  lines.length === 1 && lines[0] !== undefined
    ? lines[0].raw + lines[0].lineEnd + end
    : lines.map(({ lineEnd, raw }) => raw + lineEnd).join("") + end

/** Returns the event with other data. Several lines of data become one, because JSON has no line breaks in strings. */
export const withData = (event: SseEvent, data: string): SseEvent => {
  let isFirst = true
  const lines = event.lines.flatMap((own): ReadonlyArray<SseLine> => {
    if (own.field !== "data") return [own]
    if (!isFirst) return []
    isFirst = false
    return [lineWith(own, data)]
  })
  return { lines, end: event.end }
}

/** Returns the event with another name. */
export const withName = (event: SseEvent, name: string): SseEvent =>
  mapValues(event, ({ field, value }) => (field === "event" ? name : value))

/** Returns the event with the blank line at its end that is missing if the stream ended within the event. */
export const withEnd = (event: SseEvent): SseEvent =>
  event.end === ""
    ? { lines: event.lines.map((line) => (line.lineEnd === "" ? { ...line, lineEnd: "\n" } : line)), end: "\n" }
    : event

/** Returns the event with other values of the fields that `change` changes. */
export const mapValues = (event: SseEvent, change: (line: SseLine) => string): SseEvent => {
  let isChanged = false
  const lines = event.lines.map((line) => {
    const value = change(line)
    if (value === line.value) return line
    isChanged = true
    return lineWith(line, value)
  })
  return isChanged ? { lines, end: event.end } : event
}

/** A line break in a value would begin another line of the event. */
const lineWith = ({ field, lineEnd }: SseLine, text: string): SseLine => {
  const value = text.replace(/[\r\n]/g, " ")
  return { raw: `${field}: ${value}`, field, value, lineEnd }
}
