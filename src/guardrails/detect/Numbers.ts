import { none, wait } from "./Detector.ts"
import {
  dash,
  dot,
  edge,
  equalsSign,
  hyphen,
  isAlphanumeric,
  isAsciiLetter,
  isDigit,
  isHexDigit,
  openBracket,
  percent,
  plus,
  slash,
  space,
  tab,
  underscore
} from "./lexing/Characters.ts"
import type { NormalText } from "./lexing/NormalText.ts"

const letterM = 0x6d
const semicolon = 0x3b

/** Characters of ids, paths and base64. A number next to one of them is not a number of its own. */
const isWord = (code: number): boolean => isAlphanumeric(code) || code === underscore || code === slash

export const isDash = (code: number): boolean => code === hyphen || code === dash

export const isBlank = (code: number): boolean => code === space || code === tab

/** What separates two groups: up to three blanks, or one dash, dot or `+`, with at most one blank on each side. */
export interface Separator {
  /** `space` for blanks, `hyphen` for all dashes. */
  readonly code: number
  readonly end: number
}

const maxBlanks = 3

/** Returns the separator that begins at `start`, none, or `wait` if only later characters can tell. */
export const separatorAt = (
  text: NormalText,
  start: number,
  windowEnd: number,
  isOpen: boolean
): Separator | typeof none | typeof wait => {
  let end = start
  while (end < windowEnd && end < start + maxBlanks && isBlank(text.code(end))) end++
  if (end >= windowEnd) return isOpen ? wait : none
  const code = text.code(end)
  const isMark = isDash(code) || code === dot || code === plus
  if (!isMark) return end > start ? { code: space, end } : none
  if (end > start + 1) return none
  if (end + 1 >= windowEnd) return isOpen ? wait : none
  return { code: isDash(code) ? hyphen : code, end: isBlank(text.code(end + 1)) ? end + 2 : end + 1 }
}

/**
 * How a value is told from a part of an id. `digits`: it is a run of digits like that of any id, so that no letter, `_`
 * or `/` may stand next to it. `shape`: its punctuation or check digits are rare in ids, so that only groups with digits
 * may not: `SSN-987-65-4321/John` contains one, `a1b2-987-65-4321` does not.
 */
export type KnownBy = "digits" | "shape"

const maxJoiners = 3
/** Letters and digits next to a value are read up to this number. */
const maxWord = 16
/** A shorter word with digits, such as a year, is not an id. */
const minId = 8
const maxColor = 16

/** True if `%3A` or the end of an ANSI color stands before: their letters and digits belong to no value. */
export const isAfterEscape = (text: NormalText, start: number): boolean => {
  if (text.code(start - 3) === percent) return isHexDigit(text.code(start - 2)) && isHexDigit(text.code(start - 1))
  if (text.code(start - 1) !== letterM) return false
  let index = start - 2
  while (index > start - maxColor && (isDigit(text.code(index)) || text.code(index) === semicolon)) index--
  return text.code(index) === openBracket
}

/** The letters and digits from an index on, in one direction. */
interface Word {
  readonly length: number
  readonly hasDigit: boolean
  /** The index after the word, or before it. */
  readonly end: number
}

const wordFrom = (text: NormalText, from: number, step: 1 | -1, max = maxWord): Word => {
  let index = from
  let hasDigit = false
  for (let length = 0; length < max && isAlphanumeric(text.code(index)); length++, index += step) {
    hasDigit ||= isDigit(text.code(index))
  }
  return { length: Math.abs(index - from), hasDigit, end: index }
}

const isId = ({ hasDigit, length }: Word): boolean => hasDigit && length >= minId

/** Returns true if the number at `start` continues a number, a word or the groups of an id, such as a UUID. */
export const isJoinedBefore = (text: NormalText, start: number, by: KnownBy): boolean => {
  if (isAfterEscape(text, start)) return false
  const joiner = text.code(start - 1)
  if (isAlphanumeric(joiner)) {
    if (by === "digits") return true
    return wordFrom(text, start - 1, -1).hasDigit
  }
  if (joiner === slash) return by === "digits"
  if (joiner !== underscore && !isDash(joiner)) return false
  let index = start - 1
  while (index >= start - maxJoiners && isSameJoiner(text.code(index), joiner)) index--
  const code = text.code(index)
  if (by === "digits") return isDigit(code) || (joiner !== dash && isWord(code))
  const word = wordFrom(text, index, -1)
  return joiner === underscore ? isId(word) : isDigit(code) || (joiner === hyphen && word.hasDigit)
}

const isSameJoiner = (code: number, joiner: number): boolean =>
  joiner === underscore ? code === underscore : isDash(code)

/** What follows a number: nothing that it belongs to (the end itself), something (`none`), or it is not known (`wait`). */
export const endOfNumber = (text: NormalText, end: number, windowEnd: number, isOpen: boolean, by: KnownBy): number => {
  const unknown = isOpen ? wait : end
  if (end >= windowEnd) return unknown
  const joiner = text.code(end)
  if (isAlphanumeric(joiner)) return endBeforeWord(text, end, windowEnd, isOpen, by)
  if (joiner === slash || joiner === equalsSign) return by === "digits" ? none : end
  const isNumberJoiner = isDash(joiner) || joiner === plus
  if (!isNumberJoiner && joiner !== underscore) return end
  let index = end
  while (index < windowEnd && index < end + maxJoiners && isJoiner(text.code(index), isNumberJoiner)) index++
  if (index >= windowEnd) return unknown
  const code = text.code(index)
  if (by === "digits") return isDigit(code) || (joiner !== dash && isWord(code)) ? none : end
  if (isNumberJoiner && isDigit(code)) return none
  if (joiner === dash) return end
  const word = wordFrom(text, index, 1, Math.min(maxWord, windowEnd - index))
  if (isNumberJoiner ? word.hasDigit : isId(word)) return none
  return word.end >= windowEnd && word.length < maxWord ? unknown : end
}

const isJoiner = (code: number, isNumberJoiner: boolean): boolean =>
  isNumberJoiner ? isDash(code) || code === plus : code === underscore

/** A phone number may have an extension, as in 555-123-4567x89 and 555-123-4567ext89. */
const endBeforeWord = (text: NormalText, end: number, windowEnd: number, isOpen: boolean, by: KnownBy): number => {
  let letters = end
  while (letters < windowEnd && letters - end < maxWord && isAsciiLetter(text.code(letters))) letters++
  if (letters - end === maxWord) return by === "digits" ? none : end
  const name = stringOf(text, end, Math.min(letters, end + 4)).toLowerCase()
  const mayBeExtension = name === "x" || name === "ext" || (letters >= windowEnd && "ext".startsWith(name))
  if (letters >= windowEnd) {
    if (isOpen && (by === "shape" || mayBeExtension)) return wait
    return by === "shape" ? end : none
  }
  if (mayBeExtension) return endOfExtension(text, end, letters, windowEnd, isOpen, by)
  return by === "shape" && letters > end && !isDigit(text.code(letters)) ? end : none
}

const endOfExtension = (
  text: NormalText,
  end: number,
  digits: number,
  windowEnd: number,
  isOpen: boolean,
  by: KnownBy
): number => {
  let index = digits
  while (index < windowEnd && index < digits + 6 && isDigit(text.code(index))) index++
  const isWhole = index > digits || by === "shape"
  if (index >= windowEnd) return isOpen ? wait : isWhole ? end : none
  const code = text.code(index)
  return isWhole && !isAlphanumeric(code) && code !== underscore ? end : none
}

/** Returns the characters from `start` on up to `end` as a string. */
export const stringOf = (text: NormalText, start: number, end: number): string => {
  let result = ""
  for (let index = start; index < end; index++) {
    const code = text.code(index)
    if (code !== edge) result += code === dash ? "-" : String.fromCharCode(code)
  }
  return result
}
