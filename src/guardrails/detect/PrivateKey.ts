import { colon, dot, hyphen, isBase64, isDigit, isUpper, lineFeed, space } from "./Characters.ts"
import { type Matcher, none, wait } from "./Detector.ts"
import type { NormalText } from "./NormalText.ts"
import { stringOf } from "./Numbers.ts"

export const maxPrivateKey = 16_384
const begin = "-----BEGIN "
const end = "-----END "
const dashes = "-----"
const maxLabel = 40
/** Shorter words are headers, the last line, a checksum, or prose. */
const minLine = 20
const maxHeaderWords = 12
const maxLastWords = 2
/** A key whose end is missing counts if so many characters of it are there. */
const minBody = 64
const comma = 0x2c

const isBlank = (code: number): boolean => code === space || code === lineFeed || code === 0x0d || code === 0x09

const isInWord = (code: number): boolean =>
  isBase64(code) || code === hyphen || code === colon || code === comma || code === dot

const isInLabel = (code: number): boolean => isUpper(code) || isDigit(code) || code === space

/** Finds private keys in PEM. It continues where it waited, because a key is long. */
export class PrivateKeyMatcher implements Matcher {
  readonly #text: NormalText
  #start = -1
  #index = 0
  #wordStart = 0
  #shortWords = 0
  #body = 0
  #bodyEnd = 0
  #result: number = wait

  constructor(text: NormalText) {
    this.#text = text
  }

  match(start: number): number {
    const windowEnd = this.#text.windowEnd(start, maxPrivateKey)
    const isOpen = this.#text.isOpen(start, maxPrivateKey)
    if (start !== this.#start) {
      const body = this.#marker(start, begin, windowEnd, isOpen)
      if (body < 0) return body
      this.#start = start
      this.#index = body
      this.#wordStart = body
      this.#shortWords = 0
      this.#body = 0
      this.#result = wait
    }
    if (this.#result === wait) this.#result = this.#matchBody(windowEnd, isOpen)
    return this.#result
  }

  #matchBody(windowEnd: number, isOpen: boolean): number {
    const text = this.#text
    for (; this.#index < windowEnd; this.#index++) {
      const code = text.code(this.#index)
      if (code === hyphen) {
        const after = this.#marker(this.#index, end, windowEnd, isOpen)
        if (after !== none) return after
      }
      if (isInWord(code)) continue
      const isKey = this.#endWord() && isBlank(code)
      if (!isKey) return this.#truncated()
    }
    if (isOpen) return wait
    this.#endWord()
    return this.#truncated()
  }

  /** Ends the word before the current character. Returns false if no private key continues with it. */
  #endWord(): boolean {
    const length = this.#index - this.#wordStart
    const isFirst = this.#body === 0 && this.#shortWords === 0
    if (length >= minLine && this.#text.code(this.#wordStart) !== hyphen) {
      this.#body += length
      this.#bodyEnd = this.#index
      this.#shortWords = 0
    } else if (length > 0) {
      this.#shortWords++
      if (isFirst && this.#text.code(this.#index - 1) !== colon) return false
    }
    this.#wordStart = this.#index + 1
    return this.#shortWords <= (this.#body === 0 ? maxHeaderWords : maxLastWords)
  }

  #truncated(): number {
    return this.#body >= minBody ? this.#bodyEnd : none
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
