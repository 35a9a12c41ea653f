import { EventReader, type EventText } from "../text/EventReader.ts"
import { literalAt, withLiterals } from "../text/Literals.ts"
import type { Place, TextRoute } from "../text/Place.ts"
import type { Role } from "../text/Rule.ts"
import { dataOf, mapValues, nameOf, type SseEvent, type SseLine, withData } from "./SseEvents.ts"

/** A text of one event. */
export interface EventPiece {
  readonly lane: string
  readonly place: Place
  /** A copy repeats the whole text of its lane, or is a text that arrives whole. */
  readonly role: Role
  /** True if changing the text makes the next turn fail. */
  readonly signed: boolean
  readonly text: string
}

export interface EventPieces {
  readonly pieces: ReadonlyArray<EventPiece>
  readonly ends: EventText["ends"]
  readonly unreadable: ReadonlyArray<Place>
}

/** Reads all texts of the events of one stream, in order: those of the JSON data, and fields that hold other text. */
export class EventTexts {
  readonly #reader: EventReader

  constructor(route: TextRoute) {
    this.#reader = new EventReader(route)
  }

  read(event: SseEvent): EventPieces {
    return this.#visit(event, (piece) => piece.text).found
  }

  /** Reads the event and returns it with the texts that `change` returns. */
  rewrite(event: SseEvent, change: (piece: EventPiece) => string): SseEvent {
    return this.#visit(event, change).changed
  }

  #visit(event: SseEvent, change: (piece: EventPiece) => string): { found: EventPieces; changed: SseEvent } {
    const pieces: Array<EventPiece> = []
    const visit = (piece: EventPiece): string => {
      if (piece.text === "") return ""
      pieces.push(piece)
      return change(piece)
    }
    const fields = mapValues(event, (line) => (isText(line) ? visit(whole(line.value)) : line.value))
    const data = dataOf(event)
    if (data === undefined) return { found: { pieces, ends: [], unreadable: [] }, changed: fields }
    const read = this.#reader.read(nameOf(event), data)
    const changedData = read === undefined ? visit(whole(data)) : changedSpans(data, read.spans, visit)
    return {
      found: { pieces, ends: read?.ends ?? [], unreadable: read?.unreadable ?? [] },
      changed: changedData === data ? fields : withData(fields, changedData)
    }
  }
}

const changedSpans = (data: string, spans: EventText["spans"], visit: (piece: EventPiece) => string): string => {
  const changes = spans.flatMap((span) => {
    const { lane, place, role, signed } = span
    const text = literalAt(data, span)
    const value = visit({ lane, place, role, signed, text })
    return value === text ? [] : [{ ...span, value }]
  })
  return changes.length === 0 ? data : withLiterals(data, changes)
}

/** Data that is no JSON, and comments, are texts outside of the protocol. */
const whole = (text: string): EventPiece => ({
  lane: "event stream",
  place: "other text",
  role: "copy",
  signed: false,
  text
})

/** Ids, event names and comments without spaces, such as `ping`, are words of the protocol. */
const isText = ({ field, value }: SseLine): boolean => field !== "data" && !protocolWord.test(value)

/** Printable ASCII without `@` and spaces. A social security number looks like an id. */
const protocolWord = /^(?!\d{3}-\d{2}-\d{4}$)[!#$'-?A-[\]-~]*$/
