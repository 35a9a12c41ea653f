import { edge } from "./Characters.ts"

/**
 * The characters of a text in the form in which values are looked for, with their places in the text. Indexes and
 * offsets grow for as long as the object lives, also from text to text. It keeps the characters from `release` on and
 * `lookBehind` characters before.
 */
export class NormalText {
  /** The index of the text's first character. */
  first = 0
  /** The index after the last known character. */
  end = 0
  /** The offset in the text up to which the characters are known. */
  knownTo = 0
  /** True if no character follows the last one. */
  isComplete = false
  #released = 0
  #codes = new Array<number>(initialCapacity)
  #starts = new Array<number>(initialCapacity)
  #ends = new Array<number>(initialCapacity)
  #mask = initialCapacity - 1

  add(code: number, start: number, end: number): void {
    if (this.end - this.#released + lookBehind > this.#mask) this.#grow()
    const slot = this.end++ & this.#mask
    this.#codes[slot] = code
    this.#starts[slot] = start
    this.#ends[slot] = end
  }

  /** The code at an index, which may be up to `lookBehind` before the released ones. */
  code(index: number): number {
    return index < this.first || index >= this.end ? edge : (this.#codes[index & this.#mask] ?? edge)
  }

  startOf(index: number): number {
    return this.#starts[index & this.#mask] ?? 0
  }

  endOf(index: number): number {
    return this.#ends[index & this.#mask] ?? 0
  }

  /** The characters before `index` are no longer needed. */
  release(index: number): void {
    this.#released = index
  }

  /** Returns the index after the last character that a value which begins at `start` may have. */
  windowEnd(start: number): number {
    const limit = this.startOf(start) + maxValue
    if (this.knownTo <= limit) return this.end
    let low = start
    let high = this.end
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.endOf(middle) <= limit) low = middle + 1
      else high = middle
    }
    return low
  }

  /** True if a value that begins at `start` may contain later characters. */
  isOpen(start: number): boolean {
    return !this.isComplete && this.knownTo < this.startOf(start) + maxValue
  }

  /** The next character begins a new text. */
  begin(): void {
    // the gap keeps runs of the previous text from continuing in this one
    this.first = ++this.end
    this.#released = this.end
    this.isComplete = false
  }

  #grow(): void {
    const size = (this.#mask + 1) * 2
    const codes = new Array<number>(size)
    const starts = new Array<number>(size)
    const ends = new Array<number>(size)
    for (let index = Math.max(0, this.end - this.#mask - 1); index < this.end; index++) {
      const from = index & this.#mask
      const to = index & (size - 1)
      codes[to] = this.#codes[from] ?? 0
      starts[to] = this.#starts[from] ?? 0
      ends[to] = this.#ends[from] ?? 0
    }
    this.#codes = codes
    this.#starts = starts
    this.#ends = ends
    this.#mask = size - 1
  }
}

/**
 * A value is written with at most so many characters of the text, which bounds the memory. It leaves room for a thousand
 * invisible characters between two digits of a social security number.
 */
export const maxValue = 16_384
/** So many characters before a value tell whether it is a part of something longer. */
export const lookBehind = 64
const initialCapacity = 256
