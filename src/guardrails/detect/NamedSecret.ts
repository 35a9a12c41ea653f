import { isAlphanumeric, isAsciiLetter, plus } from "./Characters.ts"
import { none, wait } from "./Detector.ts"
import type { NormalText } from "./NormalText.ts"
import { stringOf } from "./Numbers.ts"

/** A key of a cloud that is plain base64, so its name has to stand before it. */
interface NamedSecret {
  /** Matches the name in lower case, without `_` and `-`. */
  readonly name: RegExp
  readonly length: number
  /** What follows the characters that are counted. */
  readonly padding: string
}

const namedSecrets: ReadonlyArray<NamedSecret> = [
  // AWS secret access keys
  { name: /(?:secretaccesskey|awssecretkey)$/, length: 40, padding: "" },
  // Azure storage accounts, service buses and event hubs
  { name: /accountkey$/, length: 86, padding: "==" },
  { name: /sharedaccesskey$/, length: 43, padding: "=" }
]

const maxLength = 200
const maxSeparators = 8
const maxName = 32

/** True if a named secret may begin with this character. */
export const isFirstOfNamed = (code: number): boolean => isAlphanumeric(code) || code === plus || code === 0x2f

export const matchNamedSecret = (text: NormalText, start: number): number => {
  if (!isBetweenNameAndValue(text.code(start - 1))) return none
  const name = nameBefore(text, start)
  const secret = name === "" ? undefined : namedSecrets.find((one) => one.name.test(name))
  return secret === undefined ? none : matchValue(text, start, secret)
}

const matchValue = (text: NormalText, start: number, { length, padding }: NamedSecret): number => {
  const windowEnd = text.windowEnd(start, maxLength)
  const unknown = text.isOpen(start, maxLength) ? wait : none
  let end = start
  while (end < windowEnd && end - start <= length && isFirstOfNamed(text.code(end))) end++
  if (end - start > length) return none
  if (end < windowEnd && end - start < length) return none
  for (let place = 0; place < padding.length && end < windowEnd; place++, end++) {
    if (text.code(end) !== padding.charCodeAt(place)) return none
  }
  const isWhole = end - start === length + padding.length
  return isWhole && (end < windowEnd || unknown === none) ? end : unknown
}

const isBetweenNameAndValue = (code: number): boolean => " \t\n\"'`\\:=>".includes(String.fromCharCode(code))

const isInName = (code: number): boolean => isAsciiLetter(code) || code === 0x5f || code === 0x2d

/** Returns the name in lower case without `_` and `-`. It is empty if none stands before `start`. */
const nameBefore = (text: NormalText, start: number): string => {
  let end = start
  while (end > start - maxSeparators && isBetweenNameAndValue(text.code(end - 1))) end--
  let first = end
  while (first > end - maxName && isInName(text.code(first - 1))) first--
  return stringOf(text, first, end).toLowerCase().replaceAll(/[_-]/g, "")
}
