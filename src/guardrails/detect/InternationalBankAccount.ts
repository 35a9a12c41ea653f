import { type Detector, none, wait } from "./Detector.ts"
import { isAlphanumeric, isAsciiLetter, isDigit, slash, underscore } from "./lexing/Characters.ts"
import type { NormalText } from "./lexing/NormalText.ts"
import { endOfNumber, isAfterEscape, isJoinedBefore, separatorAt, stringOf } from "./Numbers.ts"

export const internationalBankAccount: Detector = {
  kind: "IBAN",
  canStart: isAsciiLetter,
  matcher: (text) => ({ match: (start) => match(text, start) })
}

/** Matches an IBAN without separators, or in groups that the same character separates. */
const match = (text: NormalText, start: number): number => {
  if (isPartOfId(text, start)) return none
  const windowEnd = text.windowEnd(start)
  const isOpen = text.isOpen(start)
  let account = ""
  let length = Number.POSITIVE_INFINITY
  let group = ""
  let separator: number | undefined
  let index = start
  for (; account.length < length; index++) {
    if (index >= windowEnd) return isOpen ? wait : none
    const place = account.length
    if (place >= 4 && group !== "" && !isAlphanumeric(text.code(index))) {
      const next = isGroup(group) ? separatorAt(text, index, windowEnd, isOpen) : none
      if (next === wait) return wait
      if (next === none || (separator !== undefined && next.code !== separator)) return none
      separator = next.code
      group = ""
      index = next.end - 1
      continue
    }
    const code = text.code(index)
    if (place < 2 ? !isAsciiLetter(code) : place < 4 ? !isDigit(code) : !isAlphanumeric(code)) return none
    group += String.fromCharCode(code)
    account += String.fromCharCode(code).toUpperCase()
    if (place === 1) length = lengths.get(account) ?? 0
  }
  const isAccount = length > 0 && hasValidChecksum(account)
  if (!isAccount || (index < windowEnd && isAlphanumeric(text.code(index)))) return none
  return endOfNumber(text, index, windowEnd, isOpen, "shape")
}

/** Groups that are not of four characters have digits, so that words are none. */
const isGroup = (group: string): boolean => group.length === 4 || (group.length > 1 && /\d/.test(group))

/** Ids of letters and digits often look like an account, so that a letter may not stand before one. */
const isPartOfId = (text: NormalText, start: number): boolean => {
  if (isAfterEscape(text, start)) return false
  const before = text.code(start - 1)
  if (isAlphanumeric(before)) return true
  if (before === underscore && isJoinedBefore(text, start, "digits")) return !isNamed(text, start)
  if (before === slash) return /[0-9][a-z]{0,16}\/$/.test(stringOf(text, start - maxName, start).toLowerCase())
  return isJoinedBefore(text, start, "shape")
}

const maxName = 16
const isNamed = (text: NormalText, start: number): boolean =>
  /(?:iban|account|acct|konto|bank)_{1,3}$/.test(stringOf(text, start - maxName, start).toLowerCase())

const hasValidChecksum = (account: string): boolean => {
  let rest = 0
  for (const character of account.slice(4) + account.slice(0, 4)) {
    const value = Number.parseInt(character, 36)
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97
  }
  return rest === 1
}

const lengths: ReadonlyMap<string, number> = new Map(
  (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 " +
    "ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 " +
    "LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 " +
    "PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30"
  )
    .split(" ")
    .map((entry) => [entry.slice(0, 2), Number(entry.slice(2))])
)
