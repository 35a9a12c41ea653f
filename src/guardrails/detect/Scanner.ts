import { type Matcher, none, wait } from "./Detector.ts"
import type { DetectorSet } from "./DetectorSet.ts"
import { openBracket } from "./lexing/Characters.ts"
import { Lexer, unescapeJson, type Writing } from "./lexing/Lexer.ts"
import { NormalText } from "./lexing/NormalText.ts"
import { matchPlaceholder } from "./Placeholders.ts"

export type { Writing } from "./lexing/Lexer.ts"

/** A part of the scanned text. `raw` is always the exact characters of the input. */
export type Segment =
  | { readonly _tag: "Text"; readonly raw: string }
  | {
      readonly _tag: "Found"
      readonly raw: string
      readonly kind: string
      /** The value as it is: `raw` without the escapes of JSON. */
      readonly value: string
    }
  /** A placeholder of one of the kinds, such as `[EMAIL_1]`. */
  | { readonly _tag: "Placeholder"; readonly raw: string }

/** Longer pieces are scanned in parts of this length, which bounds the memory. */
const partLength = 4096

/** Finds values in a text that arrives in pieces. What it finds does not depend on where the pieces end. */
export class Scanner {
  readonly #detectors: DetectorSet
  readonly #text = new NormalText()
  readonly #lexer: Lexer
  readonly #writing: Writing
  readonly #matchers: ReadonlyArray<Matcher>
  /** The index of the first character that is not settled. */
  #next = 0
  /** The offset of the first character that has not been returned. */
  #returned = 0

  constructor(detectors: DetectorSet, writing: Writing) {
    this.#detectors = detectors
    this.#writing = writing
    this.#lexer = new Lexer(this.#text, writing)
    this.#matchers = detectors.detectors.map((detector) => detector.matcher(this.#text))
  }

  /** The number of characters that are held because a later piece may complete a value. */
  get held(): number {
    return this.#lexer.held
  }

  get heldText(): string {
    return this.#lexer.heldText
  }

  /** Takes the next piece and returns what is settled: no later piece can change it. */
  push(piece: string): ReadonlyArray<Segment> {
    const segments: Array<Segment> = []
    for (let from = 0; from < piece.length; from += partLength) {
      this.#lexer.push(piece.length <= partLength ? piece : piece.slice(from, from + partLength))
      this.#scan(segments)
    }
    return segments
  }

  /** The text ends here. Returns the rest. The scanner can then be used for another text. */
  flush(): ReadonlyArray<Segment> {
    const segments: Array<Segment> = []
    this.#lexer.finish()
    this.#text.isComplete = true
    this.#scan(segments)
    this.#text.begin()
    this.#next = this.#text.first
    return segments
  }

  /** Returns the segments of a text that is there as a whole. */
  scan(text: string): ReadonlyArray<Segment> {
    const segments = this.push(text)
    return [...segments, ...this.flush()]
  }

  #scan(segments: Array<Segment>): void {
    const text = this.#text
    while (this.#next < text.end) {
      const start = this.#next
      const code = text.code(start)
      const placeholder = code === openBracket ? matchPlaceholder(text, start, this.#detectors.kinds) : none
      if (placeholder === wait) break
      if (placeholder !== none) {
        this.#returnText(segments, text.startOf(start))
        segments.push({ _tag: "Placeholder", raw: this.#take(text.endOf(placeholder - 1)) })
        this.#next = placeholder
      } else if (!this.#matchValue(segments, start, code)) break
    }
    text.release(this.#next)
    this.#returnText(segments, this.#next < text.end ? text.startOf(this.#next) : text.knownTo)
    this.#lexer.drop(this.#returned)
  }

  /** Returns false if only later pieces can tell whether a value begins here. */
  #matchValue(segments: Array<Segment>, start: number, code: number): boolean {
    let end: number = none
    let found = 0
    const candidates = this.#detectors.candidates(code)
    for (const index of candidates) {
      const matched = this.#matchers[index]?.match(start) ?? none
      if (matched === wait) return false
      if (matched <= end) continue
      end = matched
      found = index
    }
    this.#next = end === none ? start + 1 : end
    if (end === none) return true
    this.#returnText(segments, this.#text.startOf(start))
    const raw = this.#take(this.#text.endOf(end - 1))
    const kind = this.#detectors.detectors[found]?.kind ?? ""
    segments.push({ _tag: "Found", raw, kind, value: this.#writing === "json" ? unescapeJson(raw) : raw })
    return true
  }

  #returnText(segments: Array<Segment>, end: number): void {
    if (end > this.#returned) segments.push({ _tag: "Text", raw: this.#take(end) })
  }

  /** Returns the text up to this offset, which is thereby returned. */
  #take(end: number): string {
    const raw = this.#lexer.slice(this.#returned, end)
    this.#returned = end
    return raw
  }
}

/** Scans a text that is there as a whole. */
export const scan = (detectors: DetectorSet, writing: Writing, text: string): ReadonlyArray<Segment> =>
  new Scanner(detectors, writing).scan(text)
