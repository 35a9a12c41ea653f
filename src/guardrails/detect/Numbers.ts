import { dash, edge, hyphen, isAlphanumeric, isDigit, plus, underscore } from "./Characters.ts"
import { none, wait } from "./Detector.ts"
import type { NormalText } from "./NormalText.ts"

const slash = 0x2f
const equalsSign = 0x3d
const letterX = 0x78

/** Characters of ids, paths and base64. A number next to one of them is not a number of its own. */
export const isWord = (code: number): boolean => isAlphanumeric(code) || code === underscore || code === slash

export const isDash = (code: number): boolean => code === hyphen || code === dash

const maxJoiners = 3

/** Returns true if the number at `start` continues a word or the groups of an id, such as a UUID. */
export const isJoinedBefore = (text: NormalText, start: number): boolean => {
  let index = start - 1
  if (isWord(text.code(index))) return true
  if (!isDash(text.code(index))) return false
  const joiner = text.code(index)
  for (let count = 0; count < maxJoiners && isDash(text.code(index)); count++) index--
  const code = text.code(index)
  return isDigit(code) || (joiner === hyphen && isWord(code))
}

/** What follows a number: nothing that it belongs to (the end itself), something (`none`), or it is not known (`wait`). */
export const endOfNumber = (text: NormalText, end: number, windowEnd: number, isOpen: boolean): number => {
  const unknown = isOpen ? wait : end
  if (end >= windowEnd) return unknown
  const code = text.code(end)
  if (code === equalsSign) return none
  if (isWord(code)) return (code | 0x20) === letterX ? endOfExtension(text, end, windowEnd, isOpen) : none
  if (!isDash(code) && code !== plus) return end
  let index = end
  while (index < windowEnd && index < end + maxJoiners && (isDash(text.code(index)) || text.code(index) === plus)) {
    index++
  }
  if (index === windowEnd) return unknown
  const after = text.code(index)
  return isDigit(after) || (code !== dash && isWord(after)) ? none : end
}

/** A phone number may have an extension, as in 555-123-4567x89. */
const endOfExtension = (text: NormalText, end: number, windowEnd: number, isOpen: boolean): number => {
  let index = end + 1
  while (index < windowEnd && index <= end + 5 && isDigit(text.code(index))) index++
  if (index === windowEnd) return isOpen ? wait : index > end + 1 ? end : none
  const code = text.code(index)
  return index > end + 1 && !isAlphanumeric(code) && code !== underscore ? end : none
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
