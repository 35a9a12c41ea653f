import { Scanner, type Segment, scan, type Writing } from "../detect/Scanner.ts"
import { JsonPosition } from "./JsonPosition.ts"
import { LinkContext } from "./LinkContext.ts"
import type { Redaction } from "./Redaction.ts"

/** A finding and what replaced it, so that a copy of the text gets the same placeholders. */
export interface Replacement {
  readonly kind: string
  readonly value: string
  readonly replacement: string
}

export interface TextOptions {
  readonly writing: Writing
  /** True if the text must not change. Its findings are counted as `signedFindings`. */
  readonly signed: boolean
}

/** Redacts one text, which may arrive in pieces. The result does not depend on the pieces. */
export class TextRedactor {
  readonly #redaction: Redaction
  readonly #options: TextOptions
  readonly #scanner: Scanner
  readonly #link: LinkContext | undefined
  readonly #json: JsonPosition | undefined
  readonly #replacements: Array<Replacement> = []
  /** The replacements of the text that this text repeats. */
  readonly #expected: ReadonlyArray<Replacement>
  /** The number of held characters that were sent by `release`. */
  #released = 0
  /** True if held text was sent by `pass`. */
  #isLoose = false

  constructor(redaction: Redaction, options: TextOptions, expected: ReadonlyArray<Replacement> = []) {
    this.#redaction = redaction
    this.#options = options
    this.#expected = expected
    this.#scanner = new Scanner(redaction.detectors, options.writing)
    this.#link = redaction.restore && redaction.known.size > 0 && !options.signed ? new LinkContext() : undefined
    this.#json = options.writing === "json" ? new JsonPosition(this.#link) : undefined
  }

  /** The number of characters that wait for the next piece. */
  get held(): number {
    return this.#scanner.held
  }

  /** The findings so far. A copy of the text gets the same placeholders by them. */
  get replacements(): ReadonlyArray<Replacement> {
    return this.#replacements
  }

  push(piece: string): string {
    return this.render(this.#scanner.push(piece))
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
    const { heldText } = this.#scanner
    if (heldText.length === this.#released) return sent
    if (scan(this.#redaction.detectors, this.#options.writing, heldText).some(({ _tag }) => _tag !== "Text")) {
      return sent + this.flush()
    }
    this.#isLoose = true
    const rest = heldText.slice(this.#released)
    this.#released = heldText.length
    return sent + rest
  }

  /**
   * Returns the held text if it is a word, so that it is sent before another text. The word stays held: if a later piece
   * completes a value with it, the placeholder follows the word.
   */
  release(): string {
    const { heldText } = this.#scanner
    if (this.#released === heldText.length || !word.test(heldText)) return ""
    const { detectors } = this.#redaction
    if (scan(detectors, this.#options.writing, heldText).some(({ _tag }) => _tag !== "Text")) return ""
    const rest = heldText.slice(this.#released)
    this.#released = heldText.length
    return rest
  }

  /** Redacts a text that repeats the whole text of this redactor. Equal findings get the same placeholders. */
  copy(text: string, options: TextOptions): string {
    return new TextRedactor(this.#redaction, options, this.#replacements).whole(text)
  }

  whole(text: string): string {
    return this.push(text) + this.flush()
  }

  /** Redacts segments that were scanned elsewhere. */
  render(segments: ReadonlyArray<Segment>): string {
    let out = ""
    for (const segment of segments) {
      const { raw } = segment
      const text =
        segment._tag === "Text"
          ? raw
          : segment._tag === "Found"
            ? this.#replace(segment.kind, segment.value, raw)
            : this.#restore(raw)
      const released = Math.min(this.#released, raw.length)
      if (this.#isLoose && released > 0 && segment._tag === "Found") this.#redaction.addLateFinding()
      this.#released -= released
      out += text === raw ? raw.slice(released) : text
      const position = this.#json ?? this.#link
      position?.add(raw)
    }
    return out
  }

  #replace(kind: string, value: string, raw: string): string {
    // A placeholder is no number, so the object would no longer be JSON. Numbers of other documents are not read either.
    if (this.#json?.isAtNumber && jsonNumber.test(raw)) return raw
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

  #restore(placeholder: string): string {
    const value = this.#link?.isInside === false ? this.#redaction.known.get(placeholder) : undefined
    if (value === undefined) return placeholder
    return this.#options.writing === "json" ? JSON.stringify(value).slice(1, -1) : value
  }
}

/** The last word of a sentence. It has no digit, because a part of a number may be enough to guess the number. */
const word = /^[\p{L}\p{M}.,'’-]{1,64}$/u

const jsonNumber = /^\d+(?:\.\d+)?$/
