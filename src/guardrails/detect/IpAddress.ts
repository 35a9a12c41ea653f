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
/** A word before an address is looked for in so many characters, and a word after it. */
const maxBefore = 32
const maxAfter = 16

const isInAddress = (code: number): boolean => isHexDigit(code) || code === colon || code === dot

export const ipAddress: Detector = {
  kind: "IP",
  canStart: (code) => isHexDigit(code) || code === colon,
  matcher: (text) => ({ match: (start) => match(text, start) })
}

const match = (text: NormalText, start: number): number => {
  const isFree = isAfterEscape(text, start)
  if (!isFree && isInside(text, start)) return none
  const windowEnd = text.windowEnd(start)
  const isOpen = text.isOpen(start)
  let runEnd = start
  // two more than an address, because punctuation may follow
  while (runEnd < windowEnd && runEnd - start < maxAddress + 2 && isInAddress(text.code(runEnd))) runEnd++
  if (runEnd === windowEnd && isOpen) return wait
  const run = stringOf(text, start, runEnd)
  if (!/[.:]/.test(run)) return none
  const before = isFree ? "" : stringOf(text, start - maxBefore, start).toLowerCase()
  const v4 = ipv4In(run, before)
  if (v4 !== "") return endOfAddress(text, start + v4.length, windowEnd, isOpen, isSurelyAddress(v4, before))
  const length = /[a-z]-?$|[a-z0-9_]_$/.test(before) ? 0 : ipv6Length(run, text, start)
  return length === 0 ? none : endOfAddress(text, start + length, windowEnd, isOpen, false)
}

/** True if the character before belongs to the same number or word. A letter may stand before an IPv4 address. */
const isInside = (text: NormalText, start: number): boolean => {
  const before = text.code(start - 1)
  if (isDigit(before)) return true
  return before === dot ? isDigit(text.code(start - 2)) : isAsciiLetter(before) && !isDigit(text.code(start))
}

/** Returns the end if no name or version continues after it. An address that is surely one may be followed by a name. */
const endOfAddress = (text: NormalText, end: number, windowEnd: number, isOpen: boolean, isSurely: boolean): number => {
  let last = end
  while (last < windowEnd && last < end + maxAfter && isInName(text.code(last))) last++
  if (last === windowEnd && isOpen && last < end + maxAfter) return wait
  const after = stringOf(text, end, last).toLowerCase()
  if (isSurely) return versionAfter.test(after) ? none : end
  return /^[a-z0-9]|^-[a-z]|^_[a-z0-9_]/.test(after) ? none : end
}

const versionAfter = /^[a-z]{1,16}\d|^[-_]?(?:alpha|beta|dev|rc|pre|post|snapshot|final|release|patch)(?![a-z])/

const isInName = (code: number): boolean => isAlphanumeric(code) || code === hyphen || code === underscore

/** Returns true if what stands before, or a part that is rare in versions, tells an address from a version. */
const isSurelyAddress = (address: string, before: string): boolean =>
  isPrivate.test(address) || /(?:^|\.)[12]\d\d(?:\.|$)/.test(address) || nameBefore.test(before)

const isPrivate = /^(?:10|172\.(?:1[6-9]|2\d|3[01])|192\.168)\./
const nameBefore =
  /(?:^|[^a-z])(?:ip|ipv4|ip_?addr|ip_?address|addr|address|host|server|client|from|to|src|dst)[-_]{0,3}$/

/** Returns the IPv4 address that the run begins with, or nothing. */
const ipv4In = (run: string, before: string): string => {
  const [dotted = ""] = /^[\d.]{0,47}/.exec(run) ?? []
  const address = dotted.replace(/\.{1,47}$/, "")
  if (!isIpv4(address) || isOther.test(address) || isVersion(address, before)) return ""
  const isJoined = /[a-z][-_]{0,3}$|[a-z0-9]_{1,3}$|__$/.test(before)
  return isJoined && !isSurelyAddress(address, before) ? "" : address
}

/** Loopback addresses, and object identifiers of X.500 and of the internet. */
const isOther = /^(?:127\.|0\.0\.0\.0$|2\.5\.(?:4|29)\.|1\.3\.6\.1$)/

const isVersion = (address: string, before: string): boolean =>
  (versionBefore.test(before) && !optionBefore.test(before)) ||
  (isProductVersion.test(address) && /[a-z]\/$/.test(before))

/** The option `-v` of a command makes it verbose. */
const optionBefore = /(?:^| )-v {1,6}$/
const versionBefore =
  /(?:(?:^|[^a-z])(?:v|ver|versions?|rev|revision|releases?|build|firmware|driver|sdk|sections?|chapter|clause|tables?|figures?|fig|appendix|annex|paragraph|oid)[^a-z0-9]{0,6}|§ ?|[~^]|[<>~]= ?)$/
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
