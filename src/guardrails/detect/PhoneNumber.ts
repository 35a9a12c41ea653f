import { closeParenthesis, dot, isDigit, openParenthesis, plus, space } from "./Characters.ts"
import { type Detector, type Matcher, none, RunEnd, wait } from "./Detector.ts"
import { isMachineNumber } from "./MachineNumbers.ts"
import type { NormalText } from "./NormalText.ts"
import { endOfNumber, isDash, isJoinedBefore, isWord, stringOf } from "./Numbers.ts"

/** A number without spaces, with its punctuation. */
const maxRun = 64
/** A number with spaces. */
const maxSpaced = 40

const isCore = (code: number): boolean => isDigit(code) || code === plus

const isInRun = (code: number): boolean =>
  isCore(code) || isDash(code) || code === dot || code === openParenthesis || code === closeParenthesis

const isInSpaced = (code: number): boolean => code === space || (code !== plus && isInRun(code))

/** A number with spaces is a phone number only if it has a country's `+` or an area code in parentheses. */
const international = /^\+\d{1,3}[ .-]?(?:\(\d{1,4}\)|\d{1,4})(?:[ .-]\d{2,4}){1,4}/
const afterParenthesis = /^\d{3}\) \d{3}[ .-]\d{4}/

export const phoneNumber: Detector = {
  kind: "PHONE",
  maxLength: 256,
  canStart: isCore,
  matcher: (text) => new PhoneMatcher(text)
}

class PhoneMatcher implements Matcher {
  readonly #text: NormalText
  readonly #runEnd: RunEnd
  /** The first digit or `+` of the current run. */
  #runStart = -1

  constructor(text: NormalText) {
    this.#text = text
    this.#runEnd = new RunEnd(text, isInRun)
  }

  match(start: number): number {
    const windowEnd = this.#text.windowEnd(start, phoneNumber.maxLength)
    const isOpen = this.#text.isOpen(start, phoneNumber.maxLength)
    const run = this.#matchRun(start, windowEnd, isOpen)
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
    if (runEnd - start > maxRun || isJoinedBefore(text, start)) return none
    let digits = 0
    let end = start
    for (let index = start; index < runEnd; index++) {
      if (!isDigit(text.code(index))) continue
      digits++
      end = index + 1
    }
    if (digits > 15) return none
    if (runEnd === windowEnd && isOpen) return wait
    return digits < 10 || isMachineNumber(text, start, end) ? none : endOfNumber(text, end, windowEnd, isOpen)
  }

  #matchSpaced(start: number, windowEnd: number, isOpen: boolean): number {
    const text = this.#text
    const isInternational = text.code(start) === plus
    if (isInternational ? isWord(text.code(start - 1)) : text.code(start - 1) !== openParenthesis) return none
    const limit = Math.min(start + maxSpaced, windowEnd)
    let end = start + 1
    while (end < limit && isInSpaced(text.code(end))) end++
    if (end === windowEnd && isOpen && end - start < maxSpaced) return wait
    const [found] = (isInternational ? international : afterParenthesis).exec(stringOf(text, start, end)) ?? []
    if (found === undefined) return none
    const digits = found.replaceAll(/\D/g, "").length
    return digits < 10 || digits > 15 ? none : endOfNumber(text, start + found.length, windowEnd, isOpen)
  }
}
