import { type Detector, type Matcher, none, RunEnd, wait } from "./Detector.ts"
import {
  closeParenthesis,
  dot,
  isDigit,
  isHexDigit,
  openParenthesis,
  percent,
  plus,
  slash
} from "./lexing/Characters.ts"
import type { NormalText } from "./lexing/NormalText.ts"
import { isTime } from "./MachineNumbers.ts"
import { endOfNumber, isBlank, isDash, isJoinedBefore, stringOf } from "./Numbers.ts"
import { digitsOf, isSpacedPhone, maxDigits, minDigits, runKnownBy } from "./PhoneShapes.ts"

/** A number without spaces, with its punctuation. */
const maxRun = 64
/** A number with spaces. */
const maxSpaced = 40
/** So many characters of punctuation end a number. */
const maxPunctuation = 3
const maxBefore = 8
const one = 0x31

const isCore = (code: number): boolean => isDigit(code) || code === plus

const isPunctuation = (code: number): boolean =>
  isDash(code) || code === dot || code === openParenthesis || code === closeParenthesis

const isInRun = (code: number): boolean => isCore(code) || isPunctuation(code)

const isInSpaced = (code: number): boolean => isBlank(code) || code === slash || isInRun(code)

export const phoneNumber: Detector = {
  kind: "PHONE",
  canStart: (code) => isCore(code) || code === openParenthesis,
  matcher: (text) => new PhoneMatcher(text)
}

class PhoneMatcher implements Matcher {
  readonly #text: NormalText
  readonly #runEnd: RunEnd
  /** The first digit or `+` of the current run. */
  #runStart = -1

  constructor(text: NormalText) {
    this.#text = text
    this.#runEnd = new RunEnd(text, (code, index) => isInRun(code) && !endsRun(text, index))
  }

  match(start: number): number {
    if (isInEscape(this.#text, start)) return none
    const windowEnd = this.#text.windowEnd(start)
    const isOpen = this.#text.isOpen(start)
    const isOpened = this.#text.code(start) === openParenthesis
    const run = isOpened ? this.#matchOpened(start, windowEnd, isOpen) : this.#matchRun(start, windowEnd, isOpen)
    const spaced = this.#matchSpaced(start, windowEnd, isOpen)
    return run === wait || spaced === wait ? wait : Math.max(run, spaced)
  }

  /** Matches a run of digits and punctuation. Only its first digit or `+` begins a number. */
  #matchRun(start: number, windowEnd: number, isOpen: boolean): number {
    const text = this.#text
    const isInside = start !== this.#runStart && this.#runStart !== -1 && this.#runEnd.from(this.#runStart) > start
    if (isInside) return none
    this.#runStart = start
    const runEnd = Math.min(this.#runEnd.from(start), windowEnd)
    const isCut = runEnd === windowEnd && isOpen
    if (runEnd - start > maxRun || (runEnd - start < minDigits && !isCut)) return none
    if (isJoinedBefore(text, start, "shape")) return none
    const run = stringOf(text, start, runEnd)
    if (digitsOf(run.split("(", 1).join()).length > maxDigits) return none
    if (isCut) return wait
    const before = stringOf(text, start - maxBefore, start)
    for (const end of runEnds(run)) {
      const number = run.slice(0, end)
      const { length } = digitsOf(number)
      const by = length < minDigits || length > maxDigits ? undefined : runKnownBy(number, before)
      if (by === undefined || (by === "digits" && isJoinedBefore(text, start, by))) continue
      return endOfNumber(text, start + end, windowEnd, isOpen, by)
    }
    return none
  }

  /** Matches the parenthesis before an area code, with the run after it. */
  #matchOpened(start: number, windowEnd: number, isOpen: boolean): number {
    const text = this.#text
    if (start + 1 >= windowEnd) return isOpen ? wait : none
    if (!isDigit(text.code(start + 1))) return none
    const end = this.#matchRun(start + 1, windowEnd, isOpen)
    return end < 0 || /^\d{1,5}\)/.test(stringOf(text, start + 1, end)) ? end : none
  }

  #matchSpaced(start: number, windowEnd: number, isOpen: boolean): number {
    const text = this.#text
    const opening = this.#openingOf(start, windowEnd)
    if (opening === none) return none
    const limit = Math.min(start + maxSpaced, windowEnd)
    let last = opening + 1
    while (last < limit && isInSpaced(text.code(last))) last++
    if (last === windowEnd && isOpen && last - start < maxSpaced) return wait
    const before = stringOf(text, start - maxBefore, start)
    const spaced = stringOf(text, start, last).replaceAll("\t", " ")
    for (const end of groupEnds(spaced)) {
      const number = spaced.slice(0, end)
      if (isTime(number)) return none
      if (!isSpacedPhone(number, before)) continue
      const result = endOfNumber(text, start + end, windowEnd, isOpen, "shape")
      if (result !== none) return result
    }
    return none
  }

  /** Returns the index of the `+` or parenthesis that a number with spaces begins with. A 1 may stand before it. */
  #openingOf(start: number, windowEnd: number): number {
    const text = this.#text
    const code = text.code(start)
    if (code === openParenthesis) return start
    if ((code !== plus && code !== one) || isJoinedBefore(text, start, "shape")) return none
    if (code === plus) return start
    const next = text.code(start + 1)
    const opening = isBlank(next) || isDash(next) || next === dot || next === plus ? start + 2 : start + 1
    return opening >= windowEnd || text.code(opening) === openParenthesis ? Math.min(opening, windowEnd - 1) : none
  }
}

/** True for the first punctuation after `maxPunctuation` others, such as the fourth of a line of dots. */
const endsRun = (text: NormalText, index: number): boolean => {
  let count = 0
  while (count <= maxPunctuation && isPunctuation(text.code(index - count))) count++
  return count > maxPunctuation
}

/** Returns where a run may end, the last place first: after its last digit, and before a note in parentheses. */
const runEnds = (run: string): ReadonlyArray<number> => endsOf(run, /\d(?=\(|[^\d+]{0,3}$)/g)

/** Returns where the groups of digits end, the last one first. */
const groupEnds = (number: string): ReadonlyArray<number> => endsOf(number, /\d(?!\d)/g)

const endsOf = (text: string, end: RegExp): ReadonlyArray<number> =>
  Array.from(text.matchAll(end), ({ index }) => index + 1).reverse()

/** True for the digits of a percent escape, such as `%20`. */
const isInEscape = (text: NormalText, start: number): boolean =>
  text.code(start - 1) === percent
    ? isHexDigit(text.code(start))
    : text.code(start - 2) === percent && isHexDigit(text.code(start - 1)) && isHexDigit(text.code(start))
