import { isCoordinates, isLimitOrRound, isTime } from "./MachineNumbers.ts"
import type { KnownBy } from "./Numbers.ts"

const minSpacedDigits = 9
export const minDigits = 10
export const maxDigits = 15

export const digitsOf = (number: string): string => number.replaceAll(/\D/g, "")

/**
 * Tells 10 to 15 digits with their punctuation, but without spaces, from times, decimals, amounts, versions and ids.
 * `before` is what stands before the number.
 */
export const runKnownBy = (number: string, before: string): KnownBy | undefined => {
  if (isTime(number)) return undefined
  if (number.startsWith("+")) return isInternational(number) ? "shape" : undefined
  if (american.test(number) && !version.test(number)) return "shape"
  const isInParentheses = areaInParentheses.test(number) && (number.includes("(") || before.endsWith("("))
  if (isInParentheses || others.some((pattern) => pattern.test(number))) return "digits"
  const isAmerican = bareAmerican.test(number) && !isLimitOrRound(number) && !currency.test(before)
  return isAmerican ? "digits" : undefined
}

const american = /^(?:(?:\d{1,2}|001)[-.)]{1,3}\(?|1\(?)?\d{3}[-.)]{1,3}\d{3}[-.]{1,3}\d{4}$/
/** Numbers with dots that have one part too many. */
const version = /^(?!1\.)\d{1,3}\.\d{3}\.\d{3}\.\d{4}$/

const areaInParentheses = /^\d{0,4}[-.]?\(?\d{1,5}\)[-.]?\d{2,8}(?:[-.]\d{2,8}){0,4}$/

const others = [
  // Japan, Brazil, Mexico, China
  /^(?:\d{2}-\d{4,5}|\d{3}-\d{4})-\d{4}$/,
  // with the 0 or 00 that is dialled first
  /^0[1-9]\d{1,3}-\d{7,8}$/,
  /^0[1-9]\d{0,3}([-.])\d{3,4}\1\d{3,5}$/,
  /^0[1-9](?:([-.])\d\d)(?:\1\d\d){3}$/,
  /^00[1-9]\d{0,2}(?:[-.]\d{2,8}){2,5}$/
]

/** An area and an exchange begin with 2 to 9; 555 stands for any area in examples. */
const bareAmerican = /^1?(?:555\d|(?![2-9]11)[2-9][0-8]\d(?!\d11)[2-9])\d{6}$/
const currency = /(?:\p{Sc}|(?:^|[^A-Z])(?:USD|EUR|GBP|JPY|CNY|INR|CHF|CAD|AUD|BRL|MXN|KRW)) ?$/u

const isInternational = (number: string): boolean =>
  /^\+\d{1,15}(?:[-.()]{1,3}\d{1,14}){0,8}$/.test(number) &&
  !isSignedDecimal(number) &&
  !isCoordinates(number) &&
  !isUnixTime(number) &&
  !(/^\+\d{1,15}$/.test(number) && isLimitOrRound(digitsOf(number)))

/** One dot is a decimal point, except in numbers of domain registries, such as +1.5551234567. Two are coordinates. */
const isSignedDecimal = (number: string): boolean =>
  (/^\+\d{1,15}\.\d{1,14}$/.test(number) && !/^\+(?:1\.[2-9]\d{9}|\d{2,3}\.\d{9,12})$/.test(number)) ||
  /^\+\d{1,3}\.\d{1,12}(?:-\d{1,3}\.\d| {1,2}-\d)/.test(number)

/** Seconds and milliseconds, in a line that a patch adds. */
const isUnixTime = (number: string): boolean => /^\+1(?:\d{9}|\d{12})$/.test(number)

/**
 * True for a number with spaces that is a phone number. It has a country's `+`, or an area code in parentheses with at
 * most a 1 before it.
 */
export const isSpacedPhone = (number: string, before: string): boolean => {
  if (number.startsWith("+")) return isSpacedInternational(number)
  const local = number.replace(/^1[-. +]?/, "")
  if (local.length < number.length) return americanArea.test(local)
  const isIssue = /\d ?$/.test(before)
  return (
    americanArea.test(local) ||
    areas.some((pattern) => pattern.test(local)) ||
    (!isIssue && twoDigitArea.test(local)) ||
    (dialledArea.test(local) && !/^\(\d{1,5}\)\D{0,3}(?:19|20)\d\d-\d\d-\d\d/.test(local) && isLong(local, 9, 13))
  )
}

const isLong = (number: string, min: number, max: number): boolean => {
  const { length } = digitsOf(number)
  return length >= min && length <= max
}

/** What stands between two groups. A space in a form is written `+`. */
const between = "(?: {1,3}| ?[-/] ?|[.+])"
const afterArea = "(?: {0,3}[-./+]? {0,3})"

const americanArea = new RegExp(
  `^\\((?:\\d{3}\\)${afterArea}\\d{3}${between}|(?![2-7]00)[2-9]\\d\\d\\) {0,3}\\d{3})\\d{4}$`
)
const areas = [
  // Russia
  new RegExp(`^\\([3-9]\\d\\d\\)${afterArea}\\d{3}${between}\\d\\d${between}\\d\\d$`)
]
/** Brazil and Mexico. A number before the parentheses makes it an issue of a journal with its pages. */
const twoDigitArea = new RegExp(`^\\([1-9]\\d\\)${afterArea}\\d{4,5}${between}\\d{4}$`)
/** With the 0 that is dialled first. */
const dialledArea = new RegExp(`^\\(0[1-9]\\d{0,3}\\)${afterArea}\\d{2,8}(?:${between}\\d{2,8}){0,4}$`)

const spacedInternational = new RegExp(
  `^\\+\\d{1,14}(?:${between}\\d{1,14}){0,4}(?:(?: {0,3}|[-.+])\\(\\d{1,5}\\)(?: {0,3}|[-.+])\\d{1,14})?(?:${between}\\d{1,14}){0,8}$`
)

/**
 * The groups tell it from sums and lists of numbers: at most two of them have one digit, and the last has more. Where
 * `+` separates them, the first is a country's, and one has three digits.
 */
const isSpacedInternational = (number: string): boolean => {
  if (!/[ /]|.\+/.test(number) || !spacedInternational.test(number)) return false
  if (isSignedDecimal(number) || isCoordinates(number)) return false
  const digits = digitsOf(number)
  const hasLength = /^[17]/.test(digits)
    ? digits.length === 11
    : digits.length >= minSpacedDigits && digits.length <= maxDigits
  const [country = "", ...groups] = number.match(/\d{1,14}/g) ?? []
  if (/.\+/.test(number) && (country.length > 3 || groups.every(({ length }) => length < 3))) return false
  return hasLength && groups.filter(({ length }) => length === 1).length <= 2 && (groups.at(-1)?.length ?? 0) > 1
}
