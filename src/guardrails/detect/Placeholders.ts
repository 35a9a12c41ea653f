import { none, wait } from "./Detector.ts"
import { closeBracket, isDigit, openBracket, underscore, zero } from "./lexing/Characters.ts"
import type { NormalText } from "./lexing/NormalText.ts"

const maxDigits = 9
/** The longest name of a kind, its number and the brackets. */
export const maxPlaceholder = 32 + 1 + maxDigits + 2

/** Returns the index after a placeholder, such as `[EMAIL_1]`, of one of these kinds. It contains no escapes. */
export const matchPlaceholder = (text: NormalText, start: number, kinds: ReadonlyArray<string>): number => {
  if (text.code(start) !== openBracket) return none
  let result = none
  for (const kind of kinds) {
    const end = matchKind(text, start, kind)
    if (end > 0) return text.endOf(end - 1) - text.startOf(start) === end - start ? end : none
    if (end === wait) result = wait
  }
  return result
}

const matchKind = (text: NormalText, start: number, kind: string): number => {
  const unknown = text.isComplete ? none : wait
  let index = start + 1
  for (let place = 0; place < kind.length; place++, index++) {
    if (index === text.end) return unknown
    if (text.code(index) !== kind.charCodeAt(place)) return none
  }
  if (index === text.end) return unknown
  if (text.code(index++) !== underscore) return none
  const digits = index
  while (index < text.end && index - digits < maxDigits && isDigit(text.code(index))) index++
  if (index > digits && text.code(digits) === zero) return none
  if (index === text.end) return unknown
  return index > digits && text.code(index) === closeBracket ? index + 1 : none
}
