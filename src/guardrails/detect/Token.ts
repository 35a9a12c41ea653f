import { type Matcher, none, RunEnd, wait } from "./Detector.ts"
import { dot, isBase64Url, underscore } from "./lexing/Characters.ts"
import type { NormalText } from "./lexing/NormalText.ts"
import { stringOf } from "./Numbers.ts"

/** The base64 of `{` and a quotation mark, a space or the end of a line. */
const beginnings = ["eyJ", "eyA", "ewo", "ew0"]
const beginningLength = 3
const maxUnsigned = 256
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
    const beginning = stringOf(text, start, Math.min(start + beginningLength, windowEnd))
    if (!beginnings.some((one) => one.startsWith(beginning))) return none
    if (beginning.length < beginningLength) return isOpen ? wait : none
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
    return this.#tokenEnd(start, ends, windowEnd)
  }

  #tokenEnd(start: number, ends: ReadonlyArray<number>, windowEnd: number): number {
    const text = this.#text
    const [header = 0, second, third, fourth, fifth] = ends
    if (second === undefined) return none
    const isSigned =
      second - header > minPayload && beginnings.includes(stringOf(text, header + 1, header + 1 + beginningLength))
    const isLong = !text.isComplete || windowEnd < text.end
    if (isSigned) {
      const end = third ?? second
      if (end === windowEnd && isLong) this.#resume = end
      else if (third === undefined || third - second <= minSignature)
        return third !== undefined && isUnsigned(stringOf(text, start, Math.min(header, start + maxUnsigned)))
          ? third
          : none
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

/** A token without a signature says so in its header, and its third part is empty. */
const isUnsigned = (header: string): boolean =>
  /"alg"\s{0,9}:\s{0,9}"none"/i.test(Buffer.from(header, "base64url").toString("latin1"))

const maxPunctuation = 16
const isPunctuation = (code: number): boolean => code === dot || code === underscore
