import { type Matcher, none, wait } from "./Detector.ts"
import { colon, hyphen, isBase64, isDigit, isUpper, lineFeed, space } from "./lexing/Characters.ts"
import { lookBehind, type NormalText } from "./lexing/NormalText.ts"
import { stringOf } from "./Numbers.ts"

const begin = "-----BEGIN "
const end = "-----END "
const dashes = "-----"
const maxLabel = 40
/** A shorter word is a part of a header, the last line, a checksum, or what stands before or after a line. */
const minLine = 20
/** So many characters other than blanks may stand between two lines: `> `, `<br>`, line numbers, quotation marks. */
const maxBetween = 40
/** So many before the first line, without headers and with them. More are prose about keys. */
const maxBefore = 20
const maxHeaders = 400
/** A key whose end is missing counts if so many characters of it are there. */
const minBody = 64

const isBlank = (code: number): boolean => code === space || code === lineFeed || code === 0x0d || code === 0x09

const isInLabel = (code: number): boolean => isUpper(code) || isDigit(code) || code === space

/** Finds private keys in PEM. It continues where it waited, because a key is long. */
export class PrivateKeyMatcher implements Matcher {
  readonly #text: NormalText
  #start = -1
  #index = 0
  #wordStart = 0
  /** The number of characters since the last line, without blanks. */
  #between = 0
  #hasHeader = false
  #body = 0
  #minBody = minBody
  #bodyEnd = 0
  #result: number = wait
  /** Where a key continues that is longer than a value may be. */
  #resume = -1

  constructor(text: NormalText) {
    this.#text = text
  }

  /** True if a long key before may continue here. */
  mayContinueAt(start: number): boolean {
    return this.#resume >= this.#text.first && start >= this.#resume && start - this.#resume < lookBehind
  }

  match(start: number): number {
    const windowEnd = this.#text.windowEnd(start)
    const isOpen = this.#text.isOpen(start)
    if (start !== this.#start) {
      const body = this.#bodyStart(start, windowEnd, isOpen)
      if (body < 0) return body
      this.#start = start
      this.#index = body
      this.#wordStart = body
      this.#between = 0
      this.#hasHeader = false
      this.#body = 0
      this.#result = wait
    }
    if (this.#result === wait) this.#result = this.#matchBody(windowEnd, isOpen)
    return this.#result
  }

  #bodyStart(start: number, windowEnd: number, isOpen: boolean): number {
    this.#minBody = minBody
    if (this.mayContinueAt(start)) {
      const isOther = this.#text.code(start) === hyphen && this.#marker(start, begin, windowEnd, isOpen) !== none
      if (!isOther) {
        this.#minBody = 1
        return start
      }
    }
    return this.#text.code(start) === hyphen ? this.#marker(start, begin, windowEnd, isOpen) : none
  }

  #matchBody(windowEnd: number, isOpen: boolean): number {
    const text = this.#text
    for (; this.#index < windowEnd; this.#index++) {
      const code = text.code(this.#index)
      if (isBase64(code)) continue
      if (code === hyphen) {
        const after = this.#marker(this.#index, end, windowEnd, isOpen)
        if (after === wait) return wait
        if (after !== none) {
          this.#resume = -1
          return after
        }
      }
      this.#endWord()
      this.#wordStart = this.#index + 1
      if (!isBlank(code)) this.#between++
      if (code === colon && this.#body === 0) this.#hasHeader = true
      if (this.#between > this.#maxBetween()) return this.#truncated()
    }
    if (isOpen) return wait
    this.#endWord()
    const result = this.#truncated()
    if (result !== none) this.#resume = result
    return result
  }

  #maxBetween(): number {
    if (this.#body > 0 || this.#minBody < minBody) return maxBetween
    return this.#hasHeader ? maxHeaders : maxBefore
  }

  #endWord(): void {
    const length = this.#index - this.#wordStart
    if (length < minLine) {
      this.#between += length
      return
    }
    this.#body += length
    this.#bodyEnd = this.#index
    this.#between = 0
  }

  #truncated(): number {
    return this.#body >= this.#minBody ? this.#bodyEnd : none
  }

  /** Returns the index after a line such as `-----BEGIN PRIVATE KEY-----`. */
  #marker(start: number, opening: string, windowEnd: number, isOpen: boolean): number {
    const text = this.#text
    const unknown = isOpen ? wait : none
    let index = start
    for (let place = 0; place < opening.length; place++, index++) {
      if (index >= windowEnd) return unknown
      if (text.code(index) !== opening.charCodeAt(place)) return none
    }
    const label = index
    while (index < windowEnd && index - label < maxLabel && isInLabel(text.code(index))) index++
    const labelEnd = index
    for (let place = 0; place < dashes.length; place++, index++) {
      if (index >= windowEnd) return unknown
      if (text.code(index) !== hyphen) return none
    }
    return /(?:^| )PRIVATE KEY(?: BLOCK)?$/.test(stringOf(text, label, labelEnd)) ? index : none
  }
}
