import { isControl, lineFeed, normalCode, percent } from "./Characters.ts"
import { codePointOfEntity, codePointOfPercentEscape, isBeginningOfEntity, maxEntity } from "./MarkupEscapes.ts"
import type { NormalText } from "./NormalText.ts"

/** How the text is written: as it is, or as the inside of a JSON string, as in tool arguments. */
export type Writing = "plain" | "json"

const backslash = 0x5c
const fullWidthPercent = 0xff05
const ampersand = 0x26
const letterU = 0x75
const semicolon = 0x3b

/** Longer runs of backslashes are not an escape of JSON that is nested in JSON. */
const maxBackslashes = 64

/** The longest piece of text that stands for one character: each backslash and hexadecimal digit may be an escape. */
export const maxLexeme = (maxBackslashes + 6) * 6

const incomplete = -1

/** Translates a text that arrives in pieces into the characters of a `NormalText`. */
export class Lexer {
  readonly #out: NormalText
  readonly #isJson: boolean
  /** What is not translated yet. */
  #text = ""
  /** The offset of `#text` in all of the text. */
  #base = 0
  /** The place in `#text` up to which it is translated. */
  #at = 0
  /** What is not dropped yet. Pieces are appended to it without being copied for as long as nothing is read from it. */
  #held = ""
  #heldBase = 0
  #isFinal = false
  /** A high surrogate that waits for the low one. */
  #high = 0
  #highStart = 0
  #highEnd = 0
  /** What `#decode` returns besides the character. */
  #next = 0

  constructor(out: NormalText, writing: Writing) {
    this.#out = out
    this.#isJson = writing === "json"
  }

  /** The number of characters that are not dropped. */
  get held(): number {
    return this.#held.length
  }

  get heldText(): string {
    return this.#held
  }

  push(piece: string): void {
    this.#held += piece
    this.#text = this.#at === this.#text.length ? piece : this.#text.slice(this.#at) + piece
    this.#base += this.#at
    this.#at = 0
    this.#run()
  }

  /** The text ends here. */
  finish(): void {
    this.#isFinal = true
    this.#run()
    this.#high = 0
    this.#out.knownTo = this.#base + this.#at
    this.#isFinal = false
  }

  /** Returns the text between two offsets. */
  slice(start: number, end: number): string {
    return this.#held.slice(start - this.#heldBase, end - this.#heldBase)
  }

  /** Forgets the text before this offset. */
  drop(offset: number): void {
    if (offset === this.#heldBase) return
    this.#held = this.#held.slice(offset - this.#heldBase)
    this.#heldBase = offset
  }

  #run(): void {
    const text = this.#text
    while (this.#at < text.length) {
      const code = text.charCodeAt(this.#at)
      if (code < 0x80 && isPlain[code] === 1) {
        this.#high = 0
        this.#out.add(code, this.#base + this.#at, this.#base + ++this.#at)
        continue
      }
      const next = this.#translate(this.#at)
      if (next === incomplete) break
      this.#at = next
    }
    this.#out.knownTo = this.#high === 0 ? this.#base + this.#at : this.#highStart
  }

  /** Translates what begins at `start` and returns the place after it. */
  #translate(start: number): number {
    const code = this.#decode(start)
    if (code === incomplete) return incomplete
    if (code === backslash) return this.#nestedEscape(start)
    if (code === percent || code === fullWidthPercent) return this.#percentEscape(start, this.#next)
    if (code === ampersand) return this.#entity(start, this.#next)
    this.#emit(code, start, this.#next)
    return this.#next
  }

  /** Returns the character that is written at `start`; the place after it is `#next`. */
  #decode(start: number): number {
    const text = this.#text
    if (start >= text.length) return incomplete
    const code = text.charCodeAt(start)
    this.#next = start + 1
    if (!this.#isJson || code !== backslash) return code
    if (start + 1 >= text.length) return this.#isFinal ? code : incomplete
    const letter = text.charCodeAt(start + 1)
    const character = jsonEscapes.get(letter)
    if (character !== undefined) {
      this.#next = start + 2
      return escapeLetters.has(letter) && isControl(character) ? lineFeed : character
    }
    if (letter !== letterU) return code
    let value = 0
    for (let place = start + 2; place < start + 6; place++) {
      if (place >= text.length) return this.#isFinal ? code : incomplete
      const digit = hexValue(text.charCodeAt(place))
      if (digit === -1) return code
      value = value * 16 + digit
    }
    this.#next = start + 6
    return value
  }

  /** A JSON text inside a string escapes backslashes once more, so there may be several before `u0040` or `n`. */
  #nestedEscape(start: number): number {
    let place = start
    let code = this.#decode(place)
    for (let count = 0; code === backslash; count++) {
      if (count === maxBackslashes) return this.#literal(start, place)
      place = this.#next
      code = this.#decode(place)
    }
    if (code === incomplete) return this.#isFinal ? this.#literal(start, place) : incomplete
    if (escapeLetters.has(code)) {
      const next = this.#next
      this.#emit(lineFeed, start, next)
      return next
    }
    if (code !== letterU) return this.#literal(start, place)
    let value = 0
    for (let digits = 0; digits < 4; digits++) {
      code = this.#decode(this.#next)
      if (code === incomplete && !this.#isFinal) return incomplete
      const digit = hexValue(code)
      if (digit === -1) return this.#literal(start, place)
      value = value * 16 + digit
    }
    const next = this.#next
    this.#emit(value, start, next)
    return next
  }

  /** Each character between two places stands for itself. */
  #literal(start: number, end: number): number {
    let place = start
    while (place < end) {
      const code = this.#decode(place)
      this.#emit(code, place, this.#next)
      place = this.#next
    }
    return end
  }

  #percentEscape(start: number, afterPercent: number): number {
    let place = afterPercent
    let digits = ""
    while (digits.length < 2) {
      const code = this.#decode(place)
      if (code === incomplete && !this.#isFinal) return incomplete
      if (hexValue(code) === -1) return this.#literal(start, afterPercent)
      digits += String.fromCharCode(code)
      place = this.#next
    }
    const character = codePointOfPercentEscape(digits)
    if (character === undefined) return this.#literal(start, afterPercent)
    this.#emit(character, start, place)
    return place
  }

  #entity(start: number, afterAmpersand: number): number {
    let entity = ""
    let place = afterAmpersand
    for (;;) {
      const code = this.#decode(place)
      if (code === incomplete && !this.#isFinal) return incomplete
      const next = entity + (code === incomplete ? " " : String.fromCharCode(code))
      if (next.length > maxEntity || !isBeginningOfEntity(next)) break
      entity = next
      place = this.#next
      if (code === semicolon) break
    }
    const codePoint = codePointOfEntity(entity)
    if (codePoint === undefined) return this.#literal(start, afterAmpersand)
    for (const unit of String.fromCodePoint(codePoint).split("")) this.#emit(unit.charCodeAt(0), start, place)
    return place
  }

  /** Halves of surrogate pairs without the other one do not count. */
  #emit(code: number, start: number, end: number): void {
    const high = this.#high
    this.#high = 0
    if (code >= 0xdc00 && code <= 0xdfff) {
      if (high !== 0) this.#emitPair(high, code, start, end)
      return
    }
    if (code >= 0xd800 && code <= 0xdbff) {
      this.#high = code
      this.#highStart = this.#base + start
      this.#highEnd = this.#base + end
      return
    }
    const normal = normalCode(code)
    if (normal !== undefined) this.#out.add(normal, this.#base + start, this.#base + end)
  }

  /** Adds one character for a pair that is a digit, none for an invisible one, and both halves of other pairs. */
  #emitPair(high: number, low: number, start: number, end: number): void {
    const codePoint = (high - 0xd800) * 0x400 + (low - 0xdc00) + 0x10000
    const normal = normalCode(codePoint)
    if (normal === codePoint) {
      this.#out.add(high, this.#highStart, this.#highEnd)
      this.#out.add(low, this.#base + start, this.#base + end)
    } else if (normal !== undefined) this.#out.add(normal, this.#highStart, this.#base + end)
  }
}

/** Returns what the inside of a JSON string stands for. Invalid escapes stand for themselves. */
export const unescapeJson = (text: string): string =>
  text.includes("\\")
    ? text.replace(/\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))/g, (_, hex: string | undefined, letter: string | undefined) =>
        String.fromCharCode(hex === undefined ? (jsonEscapes.get(letter?.charCodeAt(0) ?? 0) ?? 0) : parseInt(hex, 16))
      )
    : text

const jsonEscapes: ReadonlyMap<number, number> = new Map(
  Object.entries({ '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" }).map(
    ([letter, character]) => [letter.charCodeAt(0), character.charCodeAt(0)]
  )
)

const escapeLetters: ReadonlySet<number> = new Set([..."nrtbf"].map((letter) => letter.charCodeAt(0)))

/** 1 for each character of ASCII that stands for itself. */
const isPlain = Uint8Array.from({ length: 0x80 }, (_, code) =>
  code === backslash || code === percent || code === ampersand || isControl(code) ? 0 : 1
)

const hexValue = (code: number): number => {
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  const lower = code | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}
