import { type Detector, none, wait } from "./Detector.ts"
import { dot, equalsSign, isDigit, slash, space } from "./lexing/Characters.ts"
import type { NormalText } from "./lexing/NormalText.ts"
import { endOfNumber, isJoinedBefore, separatorAt, stringOf } from "./Numbers.ts"

const minDigits = 13
const maxDigits = 19
/** Groups of fewer digits are dates and counts. */
const minGroup = 3

export const paymentCard: Detector = {
  kind: "CARD",
  canStart: (code) => code >= 0x32 && code <= 0x36,
  matcher: (text) => ({ match: (start) => match(text, start) })
}

/** Visa, Mastercard, Discover, UnionPay, JCB, Mir and American Express without separators. Other digits are mostly ids. */
const isUsualAlone = (digits: string): boolean =>
  digits.length === 16 ? /^(?:4|5[1-5]|2[2-7]|6011|64[4-9]|65|62|35)/.test(digits) : /^3[47]\d{13}$/.test(digits)

/** The groups of cards. Others count only with one space between them, because columns of tables and UUIDs look alike. */
const usualGroups = /^4(?: 4){2,3}(?: [1-4])?$|^4 6 [45]$|^8 8$/

/** Matches 13 to 19 digits, alone or in groups that the same character separates. */
const match = (text: NormalText, start: number): number => {
  if (isJoinedBefore(text, start, "shape")) return none
  const windowEnd = text.windowEnd(start)
  const isOpen = text.isOpen(start)
  let digits = ""
  let group = 0
  let groups = ""
  let separator: number | undefined
  let isSpaced = true
  let found = none
  for (let index = start; ; ) {
    const isEnd = index >= windowEnd
    if (isEnd && isOpen) return wait
    const code = isEnd ? space : text.code(index)
    if (isDigit(code)) {
      if (digits.length === maxDigits) return found
      digits += String.fromCharCode(code)
      group++
      index++
      continue
    }
    // two groups with a dot between them are a decimal
    const isDecimal = separator === dot && groups === "8 "
    const isUsual = isSpaced || (!isDecimal && usualGroups.test(`${groups}${group}`))
    if (group > 0 && digits.length >= minDigits && isUsual && isCard(digits)) {
      const end = endOfCard(text, start, index, digits, separator !== undefined, windowEnd, isOpen)
      if (end === wait) return wait
      if (end !== none) found = end
    }
    if (isEnd || group < minGroup) return found
    const next = separatorAt(text, index, windowEnd, isOpen)
    if (next === wait) return wait
    if (next === none || (separator !== undefined && next.code !== separator)) return found
    separator = next.code
    isSpaced &&= code === space && next.end === index + 1
    groups += `${group} `
    group = 0
    index = next.end
  }
}

const endOfCard = (
  text: NormalText,
  start: number,
  end: number,
  digits: string,
  isGrouped: boolean,
  windowEnd: number,
  isOpen: boolean
): number => {
  if (isGrouped && isList(digits)) return none
  if (isGrouped || isNamed(text, start)) return endOfNumber(text, end, windowEnd, isOpen, "shape")
  return isUsualAlone(digits) ? endOfBare(text, start, end, windowEnd, isOpen) : none
}

/** True for ascending numbers of four digits that begin with the same two, such as 5401 5402 5403 5404. */
const isList = (digits: string): boolean => {
  if (digits.length !== 16) return false
  const numbers = digits.match(/\d{4}/g) ?? []
  return numbers.every(
    (number, place) => place === 0 || (number.startsWith(digits.slice(0, 2)) && number > (numbers[place - 1] ?? ""))
  )
}

const maxName = 32
const names =
  /(?:(?:card|visa|pan|amex|maestro|diners|discover|unionpay|jcb)(?:[ _-]?(?:number|num|no|nr))?[^a-z0-9]{0,8}|%b)$/

/** True if a word before a number says that it is a card's, or the `%B` of a magnetic stripe. */
const isNamed = (text: NormalText, start: number): boolean =>
  names.test(stringOf(text, start - maxName, start).toLowerCase())

/** Digits alone are a card's unless they are a part of an id or of a decimal. A date or the track's data may follow. */
const endOfBare = (text: NormalText, start: number, end: number, windowEnd: number, isOpen: boolean): number => {
  const isFraction = text.code(start - 1) === dot && isDigit(text.code(start - 2))
  if (isFraction || isJoinedBefore(text, start, "digits")) return none
  const code = end < windowEnd ? text.code(end) : space
  if (code === slash || code === equalsSign) return end
  if (code === dot && end + 1 >= windowEnd && isOpen) return wait
  if (code === dot && end + 1 < windowEnd && isDigit(text.code(end + 1))) return none
  return endOfNumber(text, end, windowEnd, isOpen, "digits")
}

const isCard = (digits: string): boolean =>
  networks.some(({ lengths, prefix }) => lengths.includes(digits.length) && prefix.test(digits)) && isLuhn(digits)

const from16 = [16, 17, 18, 19]

/** The prefixes and lengths of Visa, Mastercard, American Express, Diners, Discover, UnionPay, JCB, Maestro and Mir. */
const networks: ReadonlyArray<{ readonly prefix: RegExp; readonly lengths: ReadonlyArray<number> }> = [
  { prefix: /^4/, lengths: [13, 16, 19] },
  { prefix: /^(?:5[1-5]|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)/, lengths: [16] },
  { prefix: /^3[47]/, lengths: [15] },
  { prefix: /^(?:30[0-5]|3095|3[689])/, lengths: [14, ...from16] },
  { prefix: /^(?:6011|64[4-9]|65|62)/, lengths: from16 },
  { prefix: /^35(?:2[89]|[3-8]\d)/, lengths: from16 },
  { prefix: /^(?:50|5[6-8]|6304|6759|676[1-3])/, lengths: [13, 14, 15, ...from16] },
  { prefix: /^220[0-4]/, lengths: from16 }
]

const isLuhn = (digits: string): boolean => {
  let sum = 0
  for (let place = 0; place < digits.length; place++) {
    const digit = Number(digits[digits.length - 1 - place])
    const weighted = place % 2 === 0 ? digit : digit * 2
    sum += weighted > 9 ? weighted - 9 : weighted
  }
  return sum % 10 === 0
}
