import type { Place, TextRoute } from "../text/Place.ts"
import { type EventPiece, EventTexts } from "./EventTexts.ts"
import { type SseEvent, SseSplitter, textOf } from "./SseEvents.ts"

/** A text as guardrails see it. No two texts of a stream have the same lane. */
export interface StreamText {
  /** Such as `choice 0 content`. A copy that differs from the text of its lane has a number, as in `output 0 part 0 (2)`. */
  readonly lane: string
  readonly place: Place
  readonly text: string
}

interface Lane {
  readonly place: Place
  readonly deltas: Array<string>
  /** The different texts that arrived whole. */
  readonly copies: Set<string>
  /** Why the text cannot change. */
  fixed: FixedText | undefined
}

/** Changing a signed text makes the next turn fail, and pieces of unknown text may be words of their own. */
export type FixedText = "signed text" | "unknown text"

interface DistinctText {
  /** The lane's own name, which several texts may share. */
  readonly key: string
  readonly name: string
  readonly lane: Lane
  readonly text: string
  /** True if the text arrived in pieces. */
  readonly isOfDeltas: boolean
}

/** Gathers the texts of a whole stream. */
export class LaneTexts {
  readonly #events: EventTexts
  readonly #lanes = new Map<string, Lane>()
  readonly #unreadable = new Set<Place>()

  constructor(route: TextRoute) {
    this.#events = new EventTexts(route)
  }

  /** The places of content that is no text, each once. */
  get unreadable(): ReadonlyArray<Place> {
    return [...this.#unreadable]
  }

  get hasTexts(): boolean {
    return this.#lanes.size > 0
  }

  add(event: SseEvent): void {
    const { pieces, unreadable } = this.#events.read(event)
    for (const place of unreadable) this.#unreadable.add(place)
    for (const piece of pieces) {
      const lane = this.#laneOf(piece)
      if (piece.signed) lane.fixed = "signed text"
      if (piece.role === "loose") lane.fixed ??= "unknown text"
      if (piece.role === "copy") lane.copies.add(piece.text)
      else lane.deltas.push(piece.text)
    }
  }

  /** Returns the complete text of each lane once, although copies repeat it. */
  texts(): ReadonlyArray<StreamText> {
    return this.#distinct().map(({ name, lane, text }) => ({ lane: name, place: lane.place, text }))
  }

  /** Returns those of the new texts, by lane, which differ from the old ones; `undefined` if one has an unknown lane. */
  changes(texts: ReadonlyMap<string, string>): LaneChanges | undefined {
    const found = this.#distinct()
    const known = new Set(found.map(({ name }) => name))
    for (const name of texts.keys()) if (!known.has(name)) return undefined
    const changes = new LaneChanges()
    for (const { isOfDeltas, key, lane, name, text } of found) {
      const value = texts.get(name)
      if (value === undefined || value === text) continue
      if (lane.fixed !== undefined) changes.fixed.add(lane.fixed)
      else changes.add(key, text, value, isOfDeltas)
    }
    return changes
  }

  #distinct(): ReadonlyArray<DistinctText> {
    const names = new Set(this.#lanes.keys())
    const nameOf = (key: string, index: number): string => {
      if (index === 0) return key
      let number = index + 1
      while (names.has(`${key} (${number})`)) number++
      names.add(`${key} (${number})`)
      return `${key} (${number})`
    }
    return [...this.#lanes].flatMap(([key, lane]) => {
      const hasDeltas = lane.deltas.length > 0
      const texts = new Set(hasDeltas ? [lane.deltas.join(""), ...lane.copies] : lane.copies)
      return [...texts].map((text, index) => {
        const isOfDeltas = hasDeltas && index === 0
        return { key, name: nameOf(key, index), lane, text, isOfDeltas }
      })
    })
  }

  #laneOf({ lane, place }: EventPiece): Lane {
    const found = this.#lanes.get(lane)
    if (found !== undefined) return found
    const created: Lane = { place, deltas: [], copies: new Set(), fixed: undefined }
    this.#lanes.set(lane, created)
    return created
  }
}

/** The new texts of a stream. */
export class LaneChanges {
  /** The new texts by lane and old text. */
  readonly #texts = new Map<string, Map<string, string>>()
  /** The new texts of the lanes whose deltas change. They are `undefined` once they were written. */
  readonly #deltas = new Map<string, string | undefined>()
  /** The texts that should change and stay as they are. */
  readonly fixed = new Set<FixedText>()

  add(lane: string, from: string, to: string, isOfDeltas: boolean): void {
    const texts = this.#texts.get(lane) ?? new Map<string, string>()
    this.#texts.set(lane, texts.set(from, to))
    if (isOfDeltas) this.#deltas.set(lane, to)
  }

  /** Returns the stream with the new texts. The first delta of a changed lane has all of its text, and the others are empty. */
  apply(route: TextRoute, stream: Uint8Array): string {
    const splitter = new SseSplitter()
    const events = new EventTexts(route)
    const change = (piece: EventPiece) => this.#changed(piece)
    const parts = [...splitter.push(stream), ...splitter.end()].map((event) => textOf(events.rewrite(event, change)))
    return parts.join("")
  }

  #changed({ lane, role, text }: EventPiece): string {
    if (role === "copy") return this.#texts.get(lane)?.get(text) ?? text
    if (!this.#deltas.has(lane)) return text
    const first = this.#deltas.get(lane)
    this.#deltas.set(lane, undefined)
    return first ?? ""
  }
}
