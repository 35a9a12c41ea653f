import { Scanner, type Segment, scan, type Writing } from "../detect/Scanner.ts"
import { detached } from "../text/Detached.ts"
import type { Place } from "../text/Place.ts"
import { JsonPosition } from "./JsonPosition.ts"
import { LinkContext } from "./LinkContext.ts"
import type { Redaction } from "./Redaction.ts"

/** A finding and what replaced it, so that a copy of the text gets the same placeholders. */
interface Replacement {
  readonly kind: string
  readonly value: string
  readonly replacement: string
}

/** What a text leaves for its copies. */
export interface TextTrail {
  readonly replacements: ReadonlyArray<Replacement>
  /** The link in which the text begins. */
  readonly start: LinkContext | undefined
}

export interface TextOptions {
  readonly writing: Writing
  /** True if the text must not change. Its findings are counted as `signedFindings`. */
  readonly signed: boolean
  readonly place?: Place
}

/** A segment that waits because later characters tell whether a number before it belongs to JSON. */
interface Waiting {
  readonly segment: Segment
  /** What becomes of a placeholder or of other text. */
  readonly text: string
}

/**
 * `pass` looks for a value in a longer held text only after each eighth of it, which keeps the time linear. Nearly all of a
 * value that long was sent before it was whole, so that it counts as late in any case.
 */
const alwaysScanned = 256

/** Of a longer piece, only a part of this length is kept after it was scanned. */
const partLength = 4096

/** After so many characters an array of nothing but numbers is JSON. */
const maxWaiting = 256

/** Redacts one text, which may arrive in pieces. The result does not depend on the pieces. */
export class TextRedactor {
  readonly #redaction: Redaction
  readonly #options: TextOptions
  readonly #scanner: Scanner
  /** The link context in which the text begins. */
  readonly #start: LinkContext | undefined
  #position: JsonPosition | undefined
  #nextLink: LinkContext | undefined
  readonly #replacements: Array<Replacement> = []
  /** The replacements of the text that this text repeats. */
  readonly #expected: ReadonlyArray<Replacement>
  /** The number of held characters that were sent by `release`. */
  #released = 0
  /** True if held text was sent by `pass`. */
  #isLoose = false
  /** The number of characters that `pass` took since it last looked for a value in the held text. */
  #unscanned = 0
  #reach = 0
  #waiting: Array<Waiting> = []
  #waitingLength = 0

  /** `previous` is the `nextLink` of the text that this one continues in the eyes of a reader. */
  constructor(
    redaction: Redaction,
    options: TextOptions,
    expected: ReadonlyArray<Replacement> = [],
    previous?: LinkContext
  ) {
    this.#redaction = redaction
    this.#options = options
    this.#expected = expected
    this.#start = previous
    this.#scanner = new Scanner(redaction.detectors, options.writing)
  }

  /** The number of characters that wait for the next piece. */
  get held(): number {
    return this.#scanner.held + this.#waitingLength
  }

  /** What a copy of the text needs to become the same. */
  get trail(): TextTrail {
    return { replacements: this.#replacements, start: this.#start }
  }

  /** The link that has not ended at the end of the text, for the text that continues this one. */
  get nextLink(): LinkContext | undefined {
    return this.#nextLink
  }

  /** The maximum number of characters that this text had to keep at once. The memory for them is not given back. */
  get reach(): number {
    return this.#reach
  }

  push(piece: string): string {
    this.#reach = Math.max(this.#reach, Math.min(this.#scanner.held + piece.length, this.#redaction.detectors.maxHeld))
    if (piece.length <= partLength) return this.#add(this.#scanner.push(piece))
    let out = ""
    for (let from = 0; from < piece.length; from += partLength)
      out += this.#add(this.#scanner.push(detached(piece.slice(from, from + partLength))))
    return out
  }

  flush(): string {
    return this.render(this.#scanner.flush())
  }

  /**
   * Redacts the next piece and holds nothing. If a later piece completes a value, its placeholder follows the part of
   * the value that was sent. If the piece ends with a whole value, the next piece does not continue it.
   */
  pass(piece: string): string {
    const sent = this.push(piece)
    if (this.#waitingLength > 0) return sent + this.flush()
    const { held } = this.#scanner
    const rest = held - this.#released
    if (rest === 0) return sent
    this.#unscanned += piece.length
    if (held <= alwaysScanned || this.#unscanned >= held / 8) {
      this.#unscanned = 0
      if (this.#holdsValue()) return sent + this.flush()
    }
    this.#isLoose = true
    this.#released = held
    return sent + (rest <= piece.length ? piece.slice(piece.length - rest) : this.#scanner.heldText.slice(-rest))
  }

  #holdsValue(): boolean {
    const { heldText } = this.#scanner
    return scan(this.#redaction.detectors, this.#options.writing, heldText).some(({ _tag }) => _tag !== "Text")
  }

  /**
   * Returns the held text if it is a word, so that it is sent before another text. The word stays held: if a later piece
   * completes a value with it, the placeholder follows the word.
   */
  release(): string {
    const { heldText } = this.#scanner
    if (this.#waitingLength > 0 || this.#released === heldText.length || !word.test(heldText)) return ""
    if (this.#holdsValue()) return ""
    const rest = heldText.slice(this.#released)
    this.#released = heldText.length
    return rest
  }

  whole(text: string): string {
    return this.push(text) + this.flush()
  }

  /** Redacts the last segments of the text, or all if they were scanned elsewhere. */
  render(segments: ReadonlyArray<Segment>): string {
    const out = this.#add(segments)
    const rest = this.#waitingLength === 0 ? "" : this.#settle(this.#position?.end() === true)
    this.#nextLink = this.#position?.nextLink
    this.#position = undefined
    return out + rest
  }

  /** Returns the `nextLink` of a whole text, without redacting it. */
  linkAfter(text: string): LinkContext | undefined {
    const position = this.#begin()
    follow(position, text)
    return position.nextLink
  }

  #add(segments: ReadonlyArray<Segment>): string {
    let out = ""
    for (const segment of segments) out += this.#addSegment(segment)
    return out
  }

  #addSegment(segment: Segment): string {
    this.#position ??= this.#begin()
    const { raw } = segment
    if (this.#position.isSettled) return this.#sent(segment, this.#rendered(segment))
    const text = segment._tag === "Found" ? raw : this.#rendered(segment)
    if (this.#waitingLength > 0 || (segment._tag === "Found" && this.#position.enterBare())) {
      return this.#wait(this.#position, { segment, text })
    }
    const changed = segment._tag === "Found" ? this.#rendered(segment) : text
    follow(this.#position, raw)
    return this.#sent(segment, changed)
  }

  /** The first segment that waits is a finding that may be a JSON number. */
  #wait(position: JsonPosition, waiting: Waiting): string {
    const { _tag, raw } = waiting.segment
    const isJson = this.#decide(position, raw)
    // a finding that goes on into a string is a value and no number
    const isNumber = _tag !== "Found" || (isJson !== false && position.isStillBare)
    if (isJson === undefined && isNumber) {
      this.#waiting.push(waiting)
      this.#waitingLength += raw.length
      return ""
    }
    const before = this.#settle(isJson !== false)
    return before + this.#sent(waiting.segment, isNumber ? waiting.text : this.#rendered(waiting.segment))
  }

  /** Sends what waits. */
  #settle(isJson: boolean): string {
    const waiting = this.#waiting
    this.#waiting = []
    this.#waitingLength = 0
    let out = ""
    for (const { segment, text } of waiting) {
      const isFound = segment._tag === "Found" && !isJson
      out += this.#sent(segment, isFound ? this.#rendered(segment) : text)
    }
    return out
  }

  /** Returns whether what waits, or the segment itself, is JSON; `undefined` if it is not known yet. */
  #decide(position: JsonPosition, raw: string): boolean | undefined {
    let isJson: boolean | undefined
    for (let at = 0; at < raw.length; at++) {
      position.addCode(raw.charCodeAt(at))
      isJson ??= position.isJson ?? (this.#waitingLength + at >= maxWaiting ? true : undefined)
    }
    return isJson
  }

  #begin(): JsonPosition {
    const { known, restore } = this.#redaction
    const { place, signed, writing } = this.#options
    const link =
      restore && known.size > 0 && !signed
        ? (this.#start?.continued() ?? new LinkContext(writing === "json" || place === "tool arguments"))
        : undefined
    return new JsonPosition({ isDocument: writing === "json", link })
  }

  #rendered(segment: Segment): string {
    switch (segment._tag) {
      case "Text":
        return segment.raw
      case "Found":
        return this.#replace(segment.kind, segment.value, segment.raw)
      case "Placeholder":
        return this.#restore(segment.raw)
    }
  }

  /** Leaves out what `pass` and `release` have sent. A placeholder of which a part was sent stays as it is. */
  #sent({ _tag, raw }: Segment, text: string): string {
    if (this.#released === 0) return text
    const released = Math.min(this.#released, raw.length)
    this.#released -= released
    if (text === raw || (_tag === "Placeholder" && released > 0)) return raw.slice(released)
    if (this.#isLoose && released > 0) this.#redaction.addLateFinding()
    return text
  }

  #replace(kind: string, found: string, raw: string): string {
    const value = detached(found)
    if (this.#options.signed) {
      this.#redaction.addSignedFinding(value)
      return raw
    }
    const expected = this.#expected[this.#replacements.length]
    const replacement =
      expected?.kind === kind && expected.value === value
        ? expected.replacement
        : this.#redaction.replace(kind, value, raw)
    this.#replacements.push({ kind, value, replacement })
    return replacement
  }

  /** A value is written with the escapes of each string of JSON around its placeholder. */
  #restore(placeholder: string): string {
    const value = this.#redaction.known.get(placeholder)
    if (value === undefined || this.#options.signed || !this.#redaction.restore || this.#position === undefined)
      return placeholder
    if (this.#position.isInsideLink) return placeholder
    let written = value
    const depth = Math.max(this.#position.depth, this.#options.writing === "json" ? 1 : 0)
    for (let count = 0; count < depth; count++) written = JSON.stringify(written).slice(1, -1)
    return written
  }
}

const follow = (position: JsonPosition, text: string): void => {
  for (let at = 0; at < text.length; at++) position.addCode(text.charCodeAt(at))
}

/** The last word of a sentence. It has no digit, because a part of a number may be enough to guess the number. */
const word = /^[\p{L}\p{M}.,'’-]{1,64}$/u
