/**
 * True for a day with an hour, and for a day that begins with its year or ends with it, such as 2026112410,
 * 2026-11-24 10:00, 20261124-1000 and 24.11.2026.
 */
export const isTime = (number: string): boolean => {
  const digits = number.replaceAll(/\D/g, "")
  const [first = ""] = /\d{1,16}/.exec(number) ?? []
  if (first.length === 4 || first.length >= 8) return yearFirst.test(digits)
  return dayFirst.test(number)
}

const yearFirst = /^(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:[01]\d|2[0-3])(?:[0-5]\d(?:[0-5]\d|60)?)?$/
const dayFirst = /^\+?(?:0[1-9]|[12]\d|3[01])[-. ](?:0[1-9]|1[0-2])[-. ](?:19|20)\d\d/

/** Returns true for four numbers from 0 to 255 with dots between them. */
export const isIpv4 = (text: string): boolean =>
  /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.|$)){4}$/.test(text) && !text.endsWith(".")

/** Returns true for the limits of integers, such as 2147483647, and for round numbers, such as 2592000000. */
export const isLimitOrRound = (digits: string): boolean => {
  const value = Number(digits)
  const power = 2 ** Math.round(Math.log2(value))
  return Math.abs(value - power) <= 1 || digits.endsWith("00000")
}

/** Returns true for a latitude and a longitude of ISO 6709, such as +364947-0845057 and +404246.4-0740021.6. */
export const isCoordinates = (number: string): boolean =>
  /^\+(?:\d{2}(?:\.\d{1,12})?[-+][01]\d\d|\d{4}(?:\.\d{1,12})?[-+][01]\d{4}|\d{6}(?:\.\d{1,12})?[-+][01]\d{6})(?:\.\d{1,12})?$/.test(
    number
  )
