import type { LinkContext } from "../redact/LinkContext.ts"
import type { Redaction } from "../redact/Redaction.ts"
import { TextRedactor, type TextTrail } from "../redact/TextRedactor.ts"
import { detached } from "../text/Detached.ts"
import { EventReader, type EventSpan, type EventText } from "../text/EventReader.ts"
import { nodesOf } from "../text/JsonTape.ts"
import { maxLanes } from "../text/Lanes.ts"
import { literalAt, withLiterals } from "../text/Literals.ts"
import type { Place, TextRoute } from "../text/Place.ts"
import { choiceOf, choicesWithTools } from "./ChatChoices.ts"
import { eventWith, Template } from "./HeldText.ts"
import * as SequenceNumbers from "./SequenceNumbers.ts"
import { dataOf, mapValues, nameOf, type SseEvent, withData } from "./SseEvents.ts"

interface Lane {
  text: TextRedactor
  /** The event with which the held text came. */
  template: Template | undefined
  /** True for a block of a message. Clients show the blocks as one text, but not the choices of a chat. */
  readonly isBlock: boolean
  /** True if its pieces continue each other for certain, so that the end of the text may be held. */
  isHeld: boolean
}

/** The links that the texts of one event leave open for the next text of the same choice, or of the same message. */
type OpenLinks = Map<string, LinkContext | undefined>

/**
 * Redacts the events of one stream. An event without a finding passes as it is. A text whose end may still become a value
 * is sent without this end, which follows with the next piece. When a text ends, its held rest is sent in an event of its
 * own, before the event that ends it.
 */
export class EventRedactor {
  readonly #redaction: Redaction
  readonly #reader: EventReader
  readonly #open = new Map<string, Lane>()
  /** What ended texts leave for their copies. Of too many, the oldest are forgotten. */
  readonly #ended = new Map<string, TextTrail>()
  /** A link that the last block of the message began and did not end. */
  #openLink: LinkContext | undefined
  /** The data that is no JSON. */
  #raw: TextRedactor | undefined
  /** The lane of the last piece, by the choice of a chat stream. */
  readonly #currentLanes = new Map<string, string>()
  /** The number of events that were added so far. */
  #added = 0
  /** The upstream's number of the last event. */
  #lastNumber = -1
  /** The characters that the open texts keep beyond the usual. */
  #excess = 0
  #maxHeld = 0
  #hasText = false
  #hasSentText = false
  readonly #unreadable = new Set<Place>()

  constructor(redaction: Redaction, route: TextRoute) {
    this.#redaction = redaction
    this.#reader = new EventReader(route)
  }

  /** The maximum number of characters that one text has held. */
  get maxHeld(): number {
    return this.#maxHeld
  }

  /** True if a text, or a piece of one, has arrived. */
  get hasText(): boolean {
    return this.#hasText
  }

  /** True if a text, or a part of one, was sent. */
  get hasSentText(): boolean {
    return this.#hasSentText
  }

  /** The places of content that is no text. */
  get unreadable(): ReadonlySet<Place> {
    return this.#unreadable
  }

  redact(event: SseEvent): ReadonlyArray<SseEvent> {
    const data = dataOf(event)
    const checked = this.#checkedFields(event)
    if (data === undefined) return [checked]
    const text = this.#reader.read(nameOf(event), data)
    if (text === undefined) return [this.#redactOther(checked, data)]
    for (const place of text.unreadable) this.#unreadable.add(place)
    const delivered = new Set(text.spans.flatMap(({ lane, role }) => (role === "copy" ? [] : [lane])))
    const hasPieces = text.spans.some(({ role }) => role === "delta")
    const words = hasPieces ? this.#wordsBefore(text.spans) : this.#wordsBeforeTools(data)
    const added = [...words, ...this.#rest(text.ends, delivered)]
    const changed = this.#redactSpans(checked, data, text)
    return [...added, changed]
  }

  /** True if the event's data is JSON. */
  isReadable(event: SseEvent): boolean {
    const data = dataOf(event)
    return data !== undefined && nodesOf(data) !== undefined
  }

  /** Returns events with all text that is held. */
  end(): ReadonlyArray<SseEvent> {
    return this.#rest("all", new Set())
  }

  /** Comments and ids are text of the upstream as well. */
  #checkedFields(event: SseEvent): SseEvent {
    return mapValues(event, ({ field, value }) =>
      field === "data" || (field === "event" && eventName.test(value)) ? value : this.#redactWhole(value)
    )
  }

  /** Data that is no JSON is one text, as where a server sends bare tokens. */
  #redactOther(event: SseEvent, data: string): SseEvent {
    this.#raw ??= new TextRedactor(this.#redaction, plainText)
    const redacted = this.#raw.pass(data)
    return redacted === data ? event : withData(event, redacted)
  }

  #redactWhole(value: string): string {
    return new TextRedactor(this.#redaction, plainText).whole(value)
  }

  #redactSpans(event: SseEvent, data: string, { ends, spans }: EventText): SseEvent {
    const template = new Template(event, data, spans)
    const ended = ends === "all" ? undefined : new Set(ends)
    const lastPieces = new Map<string, EventSpan>()
    const links: OpenLinks = new Map()
    const pieces = spans.filter(({ role }) => role !== "copy")
    for (const span of pieces) lastPieces.set(span.lane, span)
    const copies = spans.filter(({ role }) => role === "copy")
    const isSmall = data.length <= smallEvent && this.#open.size <= fewLanes
    const changes = [...pieces, ...copies].flatMap((span) => {
      const value = isSmall ? literalAt(data, span) : detached(literalAt(data, span))
      const isLast = lastPieces.get(span.lane) === span && ended?.has(span.lane) !== false
      const redacted =
        span.role === "copy" ? this.#copy(span, value, links) : this.#piece(template, span, value, isLast)
      this.#hasText = true
      if (redacted !== "") this.#hasSentText = true
      return redacted === value ? [] : [{ ...span, value: redacted }]
    })
    if (!isSmall) {
      const holding = pieces.map(({ lane }) => lane).filter((lane) => this.#open.get(lane)?.template === template)
      if (holding.length > 0) template.shrink(new Set(holding))
    }
    return this.#numbered(event, data, changes.length === 0 ? data : withLiterals(data, changes))
  }

  /** Returns the event with changed data, and with the number that follows those of the events that were added. */
  #numbered(event: SseEvent, data: string, changed: string): SseEvent {
    const number = SequenceNumbers.numberOf(data)
    if (number !== undefined) this.#lastNumber = number
    const numbered =
      number === undefined || this.#added === 0 ? changed : SequenceNumbers.withNumber(changed, number + this.#added)
    return numbered === data ? event : withData(event, numbered)
  }

  /**
   * A copy of a text that goes on is the text so far, and ends where it may become a value. The event's pieces are read
   * before its copies, so that a text that is still open goes on after the event.
   */
  #copy(span: EventSpan, value: string, links: OpenLinks): string {
    const lane = this.#open.get(span.lane)
    const trail = lane?.text.trail ?? this.#ended.get(span.lane)
    const around = choiceOf(span.lane) ?? ""
    const isMessage = span.place === "message content"
    const link = (isMessage ? links.get(around) : undefined) ?? trail?.start
    const text = new TextRedactor(this.#redaction, span, trail?.replacements, link)
    const goesOn = lane?.isHeld === true && !span.signed
    const redacted = goesOn ? text.push(value) : text.whole(value)
    if (isMessage) links.set(around, goesOn ? text.linkAfter(value) : text.nextLink)
    if (trail === undefined) this.#keep(span.lane, text)
    return redacted
  }

  #piece(template: Template, span: EventSpan, value: string, isLast: boolean): string {
    const lane = this.#laneOf(span)
    const before = excessOf(lane)
    const sent = span.role === "loose" ? lane.text.pass(value) : lane.text.push(value)
    this.#excess += excessOf(lane) - before
    if (isLast) {
      const rest = lane.text.flush()
      this.#end(span.lane, lane)
      return sent + rest
    }
    const rest = this.#excess > maxExcess && excessOf(lane) > 0 ? this.#cut(span, lane) : ""
    if (span.role === "loose") return sent + rest
    lane.isHeld = true
    const { held } = lane.text
    if (held > this.#maxHeld) this.#maxHeld = held
    lane.template = held > 0 ? template : undefined
    return sent + rest
  }

  /** Returns what the text holds. Its next piece begins another text, for which no memory is in use yet. */
  #cut(span: EventSpan, lane: Lane): string {
    this.#excess -= excessOf(lane)
    const rest = lane.text.flush()
    lane.text = new TextRedactor(this.#redaction, span, [], lane.text.nextLink)
    return rest
  }

  #laneOf(span: EventSpan): Lane {
    const found = this.#open.get(span.lane)
    if (found !== undefined) return found
    const isBlock = span.place === "message content" && choiceOf(span.lane) === undefined
    const link = isBlock ? this.#openLink : undefined
    const text = new TextRedactor(this.#redaction, span, [], link)
    const created: Lane = { text, template: undefined, isBlock, isHeld: false }
    this.#open.set(span.lane, created)
    return created
  }

  #end(name: string, lane: Lane): void {
    const { isBlock, text } = lane
    this.#open.delete(name)
    this.#excess -= excessOf(lane)
    if (isBlock) this.#openLink = text.nextLink
    this.#keep(name, text)
  }

  #keep(name: string, { trail }: TextRedactor): void {
    if (trail.replacements.length === 0 && trail.start === undefined) return
    this.#ended.delete(name)
    this.#ended.set(name, trail)
    const [oldest] = this.#ended.keys()
    if (this.#ended.size > maxLanes && oldest !== undefined) this.#ended.delete(oldest)
  }

  /**
   * A choice of a chat stream has no event between its reasoning, its content and its tool calls. Clients show these texts
   * in the order in which they begin, so that the last word of one text is sent before the next one.
   */
  #wordsBefore(spans: ReadonlyArray<EventSpan>): ReadonlyArray<SseEvent> {
    return spans.flatMap(({ lane, role }) => {
      const choice = role === "delta" ? choiceOf(lane) : undefined
      if (choice === undefined) return []
      const previous = this.#currentLanes.get(choice)
      if (previous === lane) return []
      this.#currentLanes.set(choice, lane)
      return this.#wordOf(previous)
    })
  }

  /** A tool call begins with its name, and without a piece of its arguments. */
  #wordsBeforeTools(data: string): ReadonlyArray<SseEvent> {
    if (this.#currentLanes.size === 0) return []
    return choicesWithTools(data).flatMap((choice) => this.#wordOf(this.#currentLanes.get(choice)))
  }

  #wordOf(name: string | undefined): ReadonlyArray<SseEvent> {
    const lane = name === undefined ? undefined : this.#open.get(name)
    const word = lane?.template && lane.text.release()
    if (name === undefined || !lane?.template || !word) return []
    return [this.#addedEvent(lane.template, new Map([[name, word]]))]
  }

  /**
   * Ends the lanes and returns events with their held texts, one for each event that began to hold. The current event
   * itself flushes the lanes of which it has a piece.
   */
  #rest(ends: EventText["ends"], delivered: ReadonlySet<string>): ReadonlyArray<SseEvent> {
    if (ends === "all") this.#currentLanes.clear()
    const texts = new Map<Template, Map<string, string>>()
    for (const name of ends === "all" ? [...this.#open.keys()] : ends) {
      const lane = this.#open.get(name)
      if (lane === undefined || delivered.has(name)) continue
      const { template } = lane
      const held = lane.text.flush()
      this.#end(name, lane)
      if (template === undefined || held === "") continue
      const ofTemplate = texts.get(template) ?? new Map<string, string>()
      texts.set(template, ofTemplate.set(name, held))
    }
    return [...texts].map(([template, ofTemplate]) => this.#addedEvent(template, ofTemplate))
  }

  #addedEvent(template: Template, texts: ReadonlyMap<string, string>): SseEvent {
    this.#hasSentText = true
    return eventWith(template, texts, this.#lastNumber + ++this.#added)
  }
}

/** Texts of up to so many characters at once are bounded by the number of lanes alone. */
const usualReach = 512
/** So many characters more for all texts together. A text that needs more memory than is left is cut after its piece. */
const maxExcess = 1_048_576
const excessOf = ({ text }: Lane): number => Math.max(0, text.reach - usualReach)

/** Small events of few lanes stay in memory for as long as a text of them is held. To shrink them takes longer. */
const smallEvent = 4_096
const fewLanes = 16

const plainText = { writing: "plain", signed: false } as const

/** No detector finds a value in such a name. */
const eventName = /^[a-z_.]{1,64}$/
