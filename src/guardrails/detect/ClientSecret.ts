import { none, wait } from "./Detector.ts"
import { dot, hyphen, isAlphanumeric, isDigit, underscore } from "./lexing/Characters.ts"
import type { NormalText } from "./lexing/NormalText.ts"

const letterQ = 0x51
const tilde = 0x7e
/** So many characters stand before the mark `8Q~`, some of which may be punctuation that is not replaced. */
const maxBeforeMark = 3
const minAfterMark = 31
const maxAfterMark = 34

const isPart = (code: number): boolean =>
  isAlphanumeric(code) || code === underscore || code === tilde || code === dot || code === hyphen

/** Matches a client secret of Microsoft Entra ID, which has a digit and `Q~` after its first three characters. */
export const matchClientSecret = (text: NormalText, start: number): number => {
  const windowEnd = text.windowEnd(start)
  const isOpen = text.isOpen(start)
  let mark = start + 1
  while (mark <= start + maxBeforeMark && !isMark(text, mark)) {
    if (mark < windowEnd && !isPart(text.code(mark))) return none
    if (mark + 2 >= windowEnd) return isOpen ? wait : none
    mark++
  }
  if (mark > start + maxBeforeMark) return none
  const from = mark + 3
  let end = from
  while (end < windowEnd && end <= from + maxAfterMark && isPart(text.code(end))) end++
  if (end >= windowEnd && isOpen) return wait
  while (end > from && !isAlphanumeric(text.code(end - 1))) end--
  return end - from < minAfterMark - 1 || end - from > maxAfterMark ? none : end
}

const isMark = (text: NormalText, index: number): boolean =>
  isDigit(text.code(index)) && text.code(index + 1) === letterQ && text.code(index + 2) === tilde
