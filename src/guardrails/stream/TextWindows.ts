import { createHash, type Hash } from "node:crypto"
import { maxLanes } from "../text/Lanes.ts"
import type { Place, TextRoute } from "../text/Place.ts"
import { type EventPiece, EventTexts } from "./EventTexts.ts"
import type { StreamText } from "./LaneTexts.ts"
import { type SseEvent, textOf } from "./SseEvents.ts"

/** A piece of a text. `context` is the end of the same text before the piece. It was judged before. */
export interface WindowText extends StreamText {
  readonly context: string
}

/** A text that arrives in pieces, or one that arrived whole. */
interface Lane {
  readonly name: string
  readonly place: Place
  readonly isWhole: boolean
  readonly hash: Hash
  context: string
  /** The characters that no call has judged. */
  pending: string
  received: number
  judged: number
}

interface WaitingEvent {
  readonly text: string
  /** The event may be sent when each lane is judged up to `end`. */
  readonly needs: ReadonlyArray<{ readonly lane: Lane; readonly end: number }>
}

/**
 * Holds the events of a stream until their texts are judged. A call is due when a text has a full window, when a text
 * ends, or when the waiting events are too long.
 */
export class TextWindows {
  readonly #events: EventTexts
  readonly #windowChars: number
  readonly #lanes = new Map<string, Lane>()
  readonly #unjudged = new Set<Lane>()
  /** Hashes of texts that arrived whole. Events repeat such texts, and each is judged once. */
  readonly #seenWhole = new Set<string>()
  #waiting: Array<WaitingEvent> = []
  #waitingLength = 0
  #pendingLength = 0
  #maxHeld = 0
  #hasText = false
  #hasReleasedText = false
  #isDue = false
  /** True if the next call judges the incomplete windows too. */
  #isFlush = false
  readonly #unreadable = new Set<Place>()

  constructor(route: TextRoute, windowChars: number) {
    this.#events = new EventTexts(route)
    this.#windowChars = windowChars
  }

  get isDue(): boolean {
    return this.#isDue
  }

  /** The maximum number of characters that waited for a call. */
  get maxHeld(): number {
    return this.#maxHeld
  }

  /** True if a text, or a piece of one, has arrived. */
  get hasText(): boolean {
    return this.#hasText
  }

  /** True if a text, or a piece of one, was released. */
  get hasReleasedText(): boolean {
    return this.#hasReleasedText
  }

  /** The places of content that is no text, each once. */
  get unreadable(): ReadonlyArray<Place> {
    return [...this.#unreadable]
  }

  add(event: SseEvent): void {
    const { ends, pieces, unreadable } = this.#events.read(event)
    for (const place of unreadable) this.#unreadable.add(place)
    const needs = pieces.flatMap((piece) => {
      const lane = piece.role === "copy" ? this.#repeated(piece) : this.#continued(piece)
      return lane === undefined ? [] : [{ lane, end: lane.received }]
    })
    const text = textOf(event)
    this.#waiting.push({ text, needs })
    this.#waitingLength += text.length
    this.#maxHeld = Math.max(this.#maxHeld, this.#pendingLength)
    if (ends === "all" || ends.some((name) => this.#lanes.get(name)?.pending) || this.#waitingLength > maxWaiting)
      this.flush()
  }

  /** Makes a call due if any text is not judged. */
  flush(): void {
    if (this.#unjudged.size === 0) return
    this.#isFlush = true
    this.#isDue = true
  }

  /** Returns the texts of the call that is due, in pieces of at most one window. */
  takeDue(): ReadonlyArray<WindowText> {
    const texts = [...this.#unjudged].flatMap((lane) => this.#cut(lane))
    this.#isDue = false
    this.#isFlush = false
    return texts
  }

  /** Returns the events that wait for no text. After a call, its texts count as allowed. */
  release(): string {
    let count = 0
    let out = ""
    for (const { needs, text } of this.#waiting) {
      if (needs.some(({ end, lane }) => lane.judged < end)) break
      out += text
      if (needs.length > 0) this.#hasReleasedText = true
      count++
    }
    if (count > 0) this.#waiting = this.#waiting.slice(count)
    this.#waitingLength -= out.length
    return out
  }

  #continued(piece: EventPiece): Lane {
    const lane = this.#lanes.get(piece.lane) ?? laneOf(piece, false)
    if (lane.received === 0) this.#remember(lane)
    lane.hash.update(piece.text, "utf16le")
    this.#append(lane, piece.text)
    return lane
  }

  /** Returns the lane to wait for; `undefined` if the text was judged before. */
  #repeated(piece: EventPiece): Lane | undefined {
    const digest = createHash("sha256").update(piece.text, "utf16le").digest("base64")
    const own = this.#lanes.get(piece.lane)
    if (own?.received === piece.text.length && own.hash.copy().digest("base64") === digest) return own
    if (this.#seenWhole.has(digest)) return undefined
    const lane = laneOf(piece, true)
    this.#append(lane, piece.text)
    return lane
  }

  #append(lane: Lane, text: string): void {
    this.#hasText = true
    lane.pending += text
    lane.received += text.length
    this.#pendingLength += text.length
    this.#unjudged.add(lane)
    if (lane.pending.length >= this.#windowChars) this.#isDue = true
  }

  /** Forgets the oldest lane of too many. If it continues, it counts as a new text. */
  #remember(lane: Lane): void {
    this.#lanes.set(lane.name, lane)
    if (this.#lanes.size <= maxLanes) return
    for (const [name, { pending }] of this.#lanes) {
      if (pending !== "") continue
      this.#lanes.delete(name)
      return
    }
  }

  /** A text with a full window keeps its incomplete last window for a later call, unless it has ended. */
  #cut(lane: Lane): ReadonlyArray<WindowText> {
    const keepsRest = !lane.isWhole && !this.#isFlush && lane.pending.length >= this.#windowChars
    const texts: Array<WindowText> = []
    const { pending } = lane
    let from = 0
    while (from < pending.length && !(keepsRest && pending.length - from < this.#windowChars)) {
      const end = boundaryBefore(pending, Math.min(from + this.#windowChars, pending.length))
      const text = pending.slice(from, end)
      texts.push({ lane: lane.name, place: lane.place, context: lane.context, text })
      lane.context = lastCharacters(lane.context + text, Math.floor(this.#windowChars / 4))
      from = end
    }
    lane.pending = pending.slice(from)
    lane.judged += from
    this.#pendingLength -= from
    if (lane.pending === "") this.#unjudged.delete(lane)
    if (lane.isWhole) this.#markSeen(pending)
    return texts
  }

  #markSeen(text: string): void {
    if (this.#seenWhole.size < maxLanes)
      this.#seenWhole.add(createHash("sha256").update(text, "utf16le").digest("base64"))
  }
}

const laneOf = ({ lane, place }: EventPiece, isWhole: boolean): Lane => ({
  name: lane,
  place,
  isWhole,
  hash: createHash("sha256"),
  context: "",
  pending: "",
  received: 0,
  judged: 0
})

/** In characters. Longer waiting events make a call due, although no window is full. */
const maxWaiting = 262_144

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code < 0xdc00
const isLowSurrogate = (code: number): boolean => code >= 0xdc00 && code < 0xe000

const boundaryBefore = (text: string, end: number): number =>
  end < text.length && isHighSurrogate(text.charCodeAt(end - 1)) && isLowSurrogate(text.charCodeAt(end)) ? end - 1 : end

const lastCharacters = (text: string, count: number): string => {
  const from = Math.max(0, text.length - count)
  return text.slice(from > 0 && isLowSurrogate(text.charCodeAt(from)) ? from + 1 : from)
}
