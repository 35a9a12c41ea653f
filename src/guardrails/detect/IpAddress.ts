import { colon, dot, hyphen, isAlphanumeric, isAsciiLetter, isDigit, isHexDigit, underscore } from "./Characters.ts"
import { type Detector, none, wait } from "./Detector.ts"
import { isIpv4 } from "./MachineNumbers.ts"
import type { NormalText } from "./NormalText.ts"
import { stringOf } from "./Numbers.ts"

/** Eight groups of four digits with colons; the last two groups may be an IPv4 address. */
const maxAddress = 45

const isInAddress = (code: number): boolean => isHexDigit(code) || code === colon || code === dot

export const ipAddress: Detector = {
  kind: "IP",
  maxLength: 256,
  canStart: (code) => isHexDigit(code) || code === colon,
  matcher: (text) => ({ match: (start) => match(text, start) })
}

const match = (text: NormalText, start: number): number => {
  if (isInside(text, start)) return none
  const windowEnd = text.windowEnd(start, ipAddress.maxLength)
  const isOpen = text.isOpen(start, ipAddress.maxLength)
  let runEnd = start
  // two more than an address, because punctuation may follow
  while (runEnd < windowEnd && runEnd - start < maxAddress + 2 && isInAddress(text.code(runEnd))) runEnd++
  if (runEnd === windowEnd && isOpen) return wait
  const run = stringOf(text, start, runEnd)
  const length = addressLength(run, text.code(start - 1))
  if (length === 0) return none
  const end = start + length
  if (end >= windowEnd) return isOpen ? wait : end
  const code = text.code(end)
  if (isAlphanumeric(code) || code === underscore) return none
  if (code !== hyphen) return end
  if (end + 1 >= windowEnd) return isOpen ? wait : end
  return isAsciiLetter(text.code(end + 1)) ? none : end
}

/** True if the character before belongs to the same number, version or name. */
const isInside = (text: NormalText, start: number): boolean => {
  const before = text.code(start - 1)
  if (isAlphanumeric(before) || before === underscore) return true
  if (before === dot) return isDigit(text.code(start - 2))
  return before === hyphen && isAsciiLetter(text.code(start - 2))
}

/** Returns the length of the address that the run begins with, or 0. */
const addressLength = (run: string, before: number): number => {
  const [dotted = ""] = /^[\d.]{0,47}/.exec(run) ?? []
  const ipv4 = dotted.replace(/\.{1,47}$/, "")
  if (isIpv4(ipv4)) return /^127\.|^0\.0\.0\.0$/.test(ipv4) ? 0 : ipv4.length
  if (before === colon) return 0
  const ipv6 = run.replace(/\.{1,47}$|(?<!:):$/, "")
  return isIpv6(ipv6) ? ipv6.length : 0
}

/** An address without a digit is more often a name in a program, such as `a::b`. */
const isIpv6 = (text: string): boolean => {
  if (text.length > maxAddress || !/\d/.test(text) || !text.includes(":")) return false
  const [head = "", tail, more] = text.split("::")
  if (more !== undefined) return false
  const groups = [...groupsOf(head), ...groupsOf(tail ?? "")]
  if (!groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return false
  if (tail === undefined ? groups.length !== 8 : groups.length > 7) return false
  const isSpecial = groups.every((group, index) => Number.parseInt(group, 16) <= (index === groups.length - 1 ? 1 : 0))
  return !isSpecial
}

/** An IPv4 address at the end counts as two groups. */
const groupsOf = (part: string): ReadonlyArray<string> =>
  part === "" ? [] : part.split(":").flatMap((group) => (isIpv4(group) ? ["ffff", "ffff"] : [group]))
