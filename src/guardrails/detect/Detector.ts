import type { NormalText } from "./lexing/NormalText.ts"

/** Finds the values of one kind. */
export interface Detector {
  readonly kind: string
  /** Returns true if a value may begin with this character. `undefined`: with any. */
  readonly canStart: ((code: number) => boolean) | undefined
  readonly matcher: (text: NormalText) => Matcher
}

export interface Matcher {
  /**
   * Returns the index after the longest value that begins at `start`. It is called for increasing indexes, again for
   * the same one after `wait`, and not for all: a found value is skipped.
   */
  readonly match: (start: number) => number
}

/** No value begins here. */
export const none = -1
/** Only later characters can tell. */
export const wait = -2

/** Finds the end of the run of certain characters that an index is in. Each character is looked at once. */
export class RunEnd {
  readonly #text: NormalText
  readonly #isPart: (code: number, index: number) => boolean
  #end = 0

  constructor(text: NormalText, isPart: (code: number, index: number) => boolean) {
    this.#text = text
    this.#isPart = isPart
  }

  /** Returns the index of the first character at or after `index` that is not in the run. Indexes must not decrease. */
  from(index: number): number {
    if (this.#end < index) this.#end = index
    while (this.#end < this.#text.end && this.#isPart(this.#text.code(this.#end), this.#end)) this.#end++
    return this.#end
  }
}
