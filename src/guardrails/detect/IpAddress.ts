import { type Detector, none, wait } from "./Detector.ts"
import {
  colon,
  dot,
  hyphen,
  isAlphanumeric,
  isAsciiLetter,
  isDigit,
  isHexDigit,
  underscore
} from "./lexing/Characters.ts"
import type { NormalText } from "./lexing/NormalText.ts"
import { isIpv4 } from "./MachineNumbers.ts"
import { isAfterEscape, stringOf } from "./Numbers.ts"

/** Eight groups of four digits with colons; the last two groups may be an IPv4 address. */
const maxAddress = 45
/** A word before an address is looked for in so many characters. */
const maxBefore = 32

const isInAddress = (code: number): boolean => isHexDigit(code) || code === colon || code === dot

export const ipAddress: Detector = {
  kind: "IP",
  canStart: (code) => isHexDigit(code) || code === colon,
  matcher: (text) => ({ match: (start) => match(text, start) })
}

const match = (text: NormalText, start: number): number => {
  if (isInside(text, start)) return none
  const windowEnd = text.windowEnd(start)
  const isOpen = text.isOpen(start)
  let runEnd = start
  // two more than an address, because punctuation may follow
  while (runEnd < windowEnd && runEnd - start < maxAddress + 2 && isInAddress(text.code(runEnd))) runEnd++
  if (runEnd === windowEnd && isOpen) return wait
  const run = stringOf(text, start, runEnd)
  const length = ipv4Length(run, text, start) || ipv6Length(run, text, start)
  if (length === 0) return none
  const end = start + length
  if (end >= windowEnd) return isOpen ? wait : end
  const code = text.code(end)
  if (isAlphanumeric(code)) return none
  if (code !== hyphen && code !== underscore) return end
  if (end + 1 >= windowEnd) return isOpen ? wait : end
  const after = text.code(end + 1)
  return isAsciiLetter(after) || (code === underscore && (isDigit(after) || after === underscore)) ? none : end
}

/** True if the character before belongs to the same number, version or name. */
const isInside = (text: NormalText, start: number): boolean => {
  const before = text.code(start - 1)
  if (isAfterEscape(text, start)) return false
  if (isAlphanumeric(before)) return true
  if (before === underscore) return isAlphanumeric(text.code(start - 2)) || text.code(start - 2) === underscore
  if (before === dot) return isDigit(text.code(start - 2))
  return before === hyphen && isAsciiLetter(text.code(start - 2))
}

/** Returns the length of the IPv4 address that the run begins with, or 0. */
const ipv4Length = (run: string, text: NormalText, start: number): number => {
  const [dotted = ""] = /^[\d.]{0,47}/.exec(run) ?? []
  const address = dotted.replace(/\.{1,47}$/, "")
  if (!isIpv4(address) || /^127\.|^0\.0\.0\.0$/.test(address)) return 0
  return isVersion(address, text, start) ? 0 : address.length
}

const isVersion = (address: string, text: NormalText, start: number): boolean => {
  const before = stringOf(text, start - maxBefore, start).toLowerCase()
  return versionBefore.test(before) || (isProductVersion.test(address) && /[a-z]\/$/.test(before))
}

const versionBefore =
  /(?:(?:^|[^a-z])(?:v|ver|versions?|rev|revision|releases?|build|firmware|driver|sdk|sections?|chapter|clause|oid)[^a-z0-9]{0,6}|§ ?|[~^]|[<>~]= ?)$/
/** Browsers name themselves as in Chrome/120.0.0.0. */
const isProductVersion = /\.0\.0$/

const isLabel = (text: NormalText, start: number): boolean => {
  const [word = ""] = /[a-z]{1,32}:$/.exec(stringOf(text, start - maxBefore, start).toLowerCase()) ?? []
  return /[g-z]/.test(word) || word.length > 5
}

/** Returns the length of the IPv6 address that the run begins with, or 0. A label such as `client:` may stand before it. */
const ipv6Length = (run: string, text: NormalText, start: number): number => {
  if (text.code(start - 1) === colon && !isLabel(text, start)) return 0
  const address = run.replace(/\.{1,47}$|(?<!:):$/, "")
  return isIpv6(address) ? address.length : 0
}

/** An address without a digit is more often a name in a program, such as `a::b`. */
const isIpv6 = (text: string): boolean => {
  if (text.length > maxAddress || !/\d/.test(text) || !text.includes(":")) return false
  const [head = "", tail, more] = text.split("::")
  if (more !== undefined) return false
  const groups = [...groupsOf(head), ...groupsOf(tail ?? "")]
  if (!groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return false
  // eight groups of two digits are the id of a network card
  if (tail === undefined) return groups.length === 8 && groups.some((group) => group.length > 2) && !isZero(groups)
  return groups.length <= 7 && (prefixes.test(text) || text.includes("."))
}

/** The address of nothing, and the own one. */
const isZero = (groups: ReadonlyArray<string>): boolean => groups.every((group) => /^0{0,4}1?$/.test(group))

/**
 * The beginnings of addresses with `::`: global, local, multicast and translated ones. Others are names in a program,
 * such as `a2::b`.
 */
const prefixes = /^(?:[23][0-9a-f]{3}|f[cd][0-9a-f]{2}|fe[89ab][0-9a-f]|ff[0-9a-f]{2}|64:ff9b|100):/i

/** An IPv4 address at the end counts as two groups. */
const groupsOf = (part: string): ReadonlyArray<string> =>
  part === "" ? [] : part.split(":").flatMap((group) => (isIpv4(group) ? ["ffff", "ffff"] : [group]))
