import { isDigit, space } from "./Characters.ts"
import { type Detector, none, wait } from "./Detector.ts"
import type { NormalText } from "./NormalText.ts"
import { endOfNumber, isDash, isJoinedBefore } from "./Numbers.ts"

const minDigits = 13
const maxDigits = 19
/** Groups of fewer digits are dates and counts. */
const minGroup = 3

export const paymentCard: Detector = {
  kind: "CARD",
  maxLength: 256,
  canStart: (code) => code >= 0x32 && code <= 0x36,
  matcher: (text) => ({ match: (start) => match(text, start) })
}

/** Matches 13 to 19 digits, alone or in groups that are all separated by one space or all by one dash. */
const match = (text: NormalText, start: number): number => {
  if (isDigit(text.code(start - 1)) || isJoinedBefore(text, start)) return none
  const windowEnd = text.windowEnd(start, paymentCard.maxLength)
  const isOpen = text.isOpen(start, paymentCard.maxLength)
  let digits = ""
  let group = 0
  let separator: number | undefined
  let found = none
  for (let index = start; ; index++) {
    const isEnd = index >= windowEnd
    if (isEnd && isOpen) return wait
    const code = isEnd ? space : text.code(index)
    if (isDigit(code)) {
      if (digits.length === maxDigits) return found
      digits += String.fromCharCode(code)
      group++
      continue
    }
    if (group > 0 && digits.length >= minDigits && isCard(digits)) {
      const end = endOfNumber(text, index, windowEnd, isOpen)
      if (end === wait) return wait
      if (end !== none) found = end
    }
    const isSeparator = separator === undefined ? code === space || isDash(code) : code === separator
    if (isEnd || !isSeparator || group < minGroup) return found
    separator = code
    group = 0
  }
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
