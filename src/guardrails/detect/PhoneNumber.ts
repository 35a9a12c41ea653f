import { type Detector, type Matcher, none, RunEnd, wait } from "./Detector.ts"
import {
  closeParenthesis,
  dot,
  isDigit,
  isHexDigit,
  openParenthesis,
  percent,
  plus,
  space
} from "./lexing/Characters.ts"
import type { NormalText } from "./lexing/NormalText.ts"
import { isTime } from "./MachineNumbers.ts"
import { endOfNumber, isDash, isJoinedBefore, type KnownBy, stringOf } from "./Numbers.ts"

/** A number without spaces, with its punctuation. */
const maxRun = 64
/** A number with spaces. */
const maxSpaced = 40

const isCore = (code: number): boolean => isDigit(code) || code === plus

const isInRun = (code: number): boolean =>
  isCore(code) || isDash(code) || code === dot || code === openParenthesis || code === closeParenthesis

const isInSpaced = (code: number): boolean => code === space || (code !== plus && isInRun(code))

/** A number with spaces is a phone number only if it has a country's `+` or an area code in parentheses. */
const spacedInternational = /^\+\d{1,3}[ .-]?(?:\(\d{1,4}\)|\d{1,4})(?:[ .-]\d{2,4}){1,4}/
const spacedAfterParenthesis = /^\d{3}\) \d{3}[ .-]\d{4}/

export const phoneNumber: Detector = {
  kind: "PHONE",
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
    if (isInEscape(this.#text, start)) return none
    const windowEnd = this.#text.windowEnd(start)
    const isOpen = this.#text.isOpen(start)
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
    if (runEnd - start > maxRun || isJoinedBefore(text, start, "shape")) return none
    let digits = 0
    let end = start
    for (let index = start; index < runEnd; index++) {
      if (!isDigit(text.code(index))) continue
      digits++
      end = index + 1
    }
    if (digits > 15) return none
    if (runEnd === windowEnd && isOpen) return wait
    if (digits < 10) return none
    const by = knownBy(stringOf(text, start, end), text, start)
    if (by === undefined || (by === "digits" && isJoinedBefore(text, start, by))) return none
    return endOfNumber(text, end, windowEnd, isOpen, by)
  }

  #matchSpaced(start: number, windowEnd: number, isOpen: boolean): number {
    const text = this.#text
    const isInternational = text.code(start) === plus
    if (isInternational ? isJoinedBefore(text, start, "shape") : text.code(start - 1) !== openParenthesis) return none
    const limit = Math.min(start + maxSpaced, windowEnd)
    let end = start + 1
    while (end < limit && isInSpaced(text.code(end))) end++
    if (end === windowEnd && isOpen && end - start < maxSpaced) return wait
    const pattern = isInternational ? spacedInternational : spacedAfterParenthesis
    const [found] = pattern.exec(stringOf(text, start, end)) ?? []
    if (found === undefined || isTime(found)) return none
    const digits = found.replaceAll(/\D/g, "").length
    return digits < 10 || digits > 15 ? none : endOfNumber(text, start + found.length, windowEnd, isOpen, "shape")
  }
}

/** True for the digits of a percent escape, such as `%20`. */
const isInEscape = (text: NormalText, start: number): boolean =>
  text.code(start - 1) === percent
    ? isHexDigit(text.code(start))
    : text.code(start - 2) === percent && isHexDigit(text.code(start - 1)) && isHexDigit(text.code(start))

/** Tells 10 to 15 digits with their punctuation from times, decimals, amounts, versions and ids. */
const knownBy = (run: string, text: NormalText, start: number): KnownBy | undefined => {
  const number = isAfterEscapedPlus(text, start) ? `+${run}` : run
  if (isTime(number)) return undefined
  if (number.startsWith("+")) return isInternational(number) ? "shape" : undefined
  if (american.test(number) && !version.test(number)) return "shape"
  const isInParentheses = areaInParentheses.test(number) && (number.includes("(") || before(text, start) === "(")
  if (isInParentheses || others.some((pattern) => pattern.test(number))) return "digits"
  return bareAmerican.test(number) && !/\p{Sc}/u.test(before(text, start)) ? "digits" : undefined
}

const before = (text: NormalText, start: number): string => stringOf(text, start - 1, start)

/** A `+` in a form or query is written `%2B`. */
const isAfterEscapedPlus = (text: NormalText, start: number): boolean =>
  stringOf(text, start - 3, start).toLowerCase() === "%2b"

const american = /^(?:(?:\d{1,2}|001)[-.)]{1,3}\(?|1\(?)?\d{3}[-.)]{1,3}\d{3}[-.]{1,3}\d{4}$/
/** Numbers with dots that have one part too many. */
const version = /^(?!1\.)\d{1,3}\.\d{3}\.\d{3}\.\d{4}$/

const areaInParentheses = /^\d{0,4}[-.]?\(?\d{1,5}\)[-.]?\d{2,8}(?:[-.]\d{2,8}){0,4}$/

const others = [
  // Japan, Brazil, Mexico, China
  /^(?:\d{2}-\d{4,5}|\d{3}-\d{4})-\d{4}$/,
  // with the 0 or 00 that is dialled first
  /^0[1-9]\d{1,3}-\d{7,8}$/,
  /^0[1-9]\d{0,3}([-.])\d{3,4}\1\d{3,5}$/,
  /^0[1-9](?:([-.])\d\d)(?:\1\d\d){3}$/,
  /^00[1-9]\d{0,2}(?:[-.]\d{2,8}){2,5}$/
]

/** An area and an exchange begin with 2 to 9; 555 stands for any area in examples. */
const bareAmerican = /^1?(?:555\d|(?![2-9]11)[2-9][0-8]\d(?!\d11)[2-9])\d{6}$/

const isInternational = (number: string): boolean =>
  /^\+\d{1,15}(?:[-.()]{1,3}\d{1,14}){0,8}$/.test(number) && !isSignedDecimal(number) && !isUnixTime(number)

/** One dot is a decimal point, except in numbers of domain registries, such as +1.5551234567. Two are coordinates. */
const isSignedDecimal = (number: string): boolean =>
  (/^\+\d{1,15}\.\d{1,14}$/.test(number) && !/^\+(?:1\.[2-9]\d{9}|\d{2,3}\.\d{9,12})$/.test(number)) ||
  /^\+\d{1,3}\.\d{1,12}-\d{1,3}\.\d/.test(number)

/** Seconds and milliseconds, in a line that a patch adds. */
const isUnixTime = (number: string): boolean => /^\+1(?:\d{9}|\d{12})$/.test(number)
