import { type Matcher, none, RunEnd, wait } from "./Detector.ts"
import { dot, isBase64Url, underscore } from "./lexing/Characters.ts"
import type { NormalText } from "./lexing/NormalText.ts"

const beginning = [0x65, 0x79, 0x4a] // "eyJ", which is the base64 of `{"`
const minHeader = 8
const minPayload = 8
const minSignature = 10
const encryptedParts = 5
const minVector = 12
const maxVector = 24
const minTag = 20
const maxTag = 44

const isPart = (code: number): boolean => isBase64Url(code) || code === dot

/** Finds JSON Web Tokens: three parts if they are signed, five if they are encrypted. */
export class TokenMatcher implements Matcher {
  readonly #text: NormalText
  /** A run for each part, because where a part ends only grows from token to token. */
  readonly #partEnds: ReadonlyArray<RunEnd>
  readonly #rest: RunEnd
  /** Where a token continues that is longer than a value may be. */
  #resume = -1

  constructor(text: NormalText) {
    this.#text = text
    this.#partEnds = Array.from({ length: encryptedParts }, () => new RunEnd(text, isBase64Url))
    this.#rest = new RunEnd(text, isPart)
  }

  /** True if the long token before continues here. Punctuation of it that begins no value may stand between. */
  continuesAt(start: number): boolean {
    if (this.#resume === -1) return false
    let index = this.#resume
    while (index < start && index - this.#resume < maxPunctuation && isPunctuation(this.#text.code(index))) index++
    if (index === start && isPart(this.#text.code(start))) return true
    this.#resume = -1
    return false
  }

  /** Returns the index after the part of a long token that begins here. */
  continue(start: number): number {
    const windowEnd = this.#text.windowEnd(start)
    const end = Math.min(this.#rest.from(start), windowEnd)
    if (end === windowEnd && this.#text.isOpen(start)) return wait
    this.#resume = end === windowEnd ? end : -1
    return end
  }

  match(start: number): number {
    const text = this.#text
    const windowEnd = text.windowEnd(start)
    const isOpen = text.isOpen(start)
    for (const [place, code] of beginning.entries()) {
      if (start + place >= windowEnd) return isOpen ? wait : none
      if (text.code(start + place) !== code) return none
    }
    const ends: Array<number> = []
    let from = start
    for (const partEnd of this.#partEnds) {
      const end = Math.min(partEnd.from(from), windowEnd)
      if (end >= windowEnd && isOpen) return wait
      ends.push(end)
      if (ends.length === 1 && end - start < minHeader) return none
      if (end >= windowEnd || text.code(end) !== dot) break
      from = end + 1
    }
    return this.#tokenEnd(ends, windowEnd)
  }

  #tokenEnd(ends: ReadonlyArray<number>, windowEnd: number): number {
    const text = this.#text
    const [header = 0, second, third, fourth, fifth] = ends
    if (second === undefined) return none
    const isSigned =
      second - header > minPayload && beginning.every((code, place) => text.code(header + 1 + place) === code)
    const isLong = !text.isComplete || windowEnd < text.end
    if (isSigned) {
      const end = third ?? second
      if (end === windowEnd && isLong) this.#resume = end
      else if (third === undefined || third - second <= minSignature) return none
      return end
    }
    if (third === undefined || third - second <= minVector || third - second > maxVector + 1) return none
    if (fourth === windowEnd && isLong) {
      this.#resume = fourth
      return fourth
    }
    if (fourth === undefined || fifth === undefined) return none
    return fifth - fourth > minTag && fifth - fourth <= maxTag + 1 ? fifth : none
  }
}

const maxPunctuation = 16
const isPunctuation = (code: number): boolean => code === dot || code === underscore
