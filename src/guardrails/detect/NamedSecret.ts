import { none, wait } from "./Detector.ts"
import { closeBracket, isAlphanumeric, isAsciiLetter, openBracket, plus, slash, space } from "./lexing/Characters.ts"
import { lookBehind, type NormalText } from "./lexing/NormalText.ts"
import { stringOf } from "./Numbers.ts"

/** A key of a cloud that is plain base64, so its name has to stand before it. */
interface NamedSecret {
  /** Matches the name in lower case, without spaces, `_` and `-`. */
  readonly name: RegExp
  readonly length: number
  /** How many `=` follow the characters that are counted. */
  readonly padding: number
}

const namedSecrets: ReadonlyArray<NamedSecret> = [
  // AWS secret access keys
  { name: /(?:secretaccesskey|awssecretkey|awssecret)(?:is)?$/, length: 40, padding: 0 },
  // Azure storage accounts, service buses and event hubs
  { name: /accountkey$/, length: 86, padding: 2 },
  { name: /sharedaccesskey$/, length: 43, padding: 1 }
]

const minLength = Math.min(...namedSecrets.map(({ length }) => length))
const maxLength = Math.max(...namedSecrets.map(({ length }) => length))
const maxSeparators = 28
/** What the command line of AWS shows in brackets: `None`, or the end of the key that it has. */
const maxShown = 22
const maxName = 32
const equalsSign = 0x3d

/** True if a named secret may begin with this character. */
export const isFirstOfNamed = (code: number): boolean => isAlphanumeric(code) || code === plus || code === slash

export const matchNamedSecret = (text: NormalText, start: number): number => {
  if (!isBetweenNameAndValue(text.code(start - 1))) return none
  const windowEnd = text.windowEnd(start)
  let end = start
  while (end < windowEnd && end - start <= maxLength && isFirstOfNamed(text.code(end))) end++
  const isOpen = end === windowEnd && text.isOpen(start)
  if (end - start < minLength && !isOpen) return none
  const secret = secretNamed(nameBefore(text, start))
  if (secret === undefined || end - start > secret.length) return none
  if (isOpen) return wait
  if (end - start < secret.length) return none
  return endOfPadding(text, end, secret.padding, windowEnd, text.isOpen(start))
}

const endOfPadding = (text: NormalText, start: number, count: number, windowEnd: number, isOpen: boolean): number => {
  for (let end = start; end < start + count; end++) {
    if (end >= windowEnd) return isOpen ? wait : none
    if (text.code(end) !== equalsSign) return none
  }
  const end = start + count
  return end >= windowEnd && isOpen ? wait : end
}

/** Returns what secret has this name. */
const secretNamed = (name: string): NamedSecret | undefined => {
  const normal = name.toLowerCase().replaceAll(/[ _-]/g, "")
  return normal === "" ? undefined : namedSecrets.find((one) => one.name.test(normal))
}

const isBetweenNameAndValue = (code: number): boolean => " \t\n\r\"'`\\:=>|".includes(String.fromCharCode(code))

const isInName = (code: number): boolean => isAsciiLetter(code) || code === 0x5f || code === 0x2d || code === space

/** Returns the name that stands before `start`, with what stands before the name on its line. */
const nameBefore = (text: NormalText, start: number): string => {
  let end = start
  while (end > start - maxSeparators && isBetweenNameAndValue(text.code(end - 1))) end--
  if (text.code(end - 1) === closeBracket) {
    let open = end - 2
    while (open > end - maxShown && isShown(text.code(open))) open--
    if (text.code(open) === openBracket) end = text.code(open - 1) === space ? open - 1 : open
  }
  let first = end
  const limit = Math.max(end - maxName, start - lookBehind)
  while (first > limit && isInName(text.code(first - 1))) first--
  return stringOf(text, first, end)
}

const isShown = (code: number): boolean => isAlphanumeric(code) || code === 0x2a
