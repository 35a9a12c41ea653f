import { colon, isDigit } from "./Characters.ts"
import type { NormalText } from "./NormalText.ts"
import { stringOf } from "./Numbers.ts"

/** True for 10 to 15 digits that are a time, a decimal number or an address of a computer rather than a phone number. */
export const isMachineNumber = (text: NormalText, start: number, end: number): boolean => {
  const number = stringOf(text, start, end)
  return (
    isUnixTime(number) ||
    isTimestamp(number) ||
    isDecimal(number) ||
    isIpv4(number) ||
    (/^\d\d\./.test(number) && text.code(start - 1) === colon && isDigit(text.code(start - 2)))
  )
}

/** Seconds from 2010 to 2033, milliseconds, and seconds with a fraction. */
const isUnixTime = (number: string): boolean =>
  /^1\d{12}$/.test(number) || (/^1\d{9}(?:\.\d{1,5})?$/.test(number) && Number(number) >= Date.UTC(2010, 0, 1) / 1000)

/** Fourteen digits from the year to the second, such as 20261124100000. */
const isTimestamp = (number: string): boolean =>
  /^(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:[01]\d|2[0-3])[0-5]\d(?:[0-5]\d|60)$/.test(
    number.replaceAll(/[-.]/g, "")
  )

const isDecimal = (number: string): boolean => /^(?:\d\.\d{1,14}|\d{1,14}\.\d{9,14})$/.test(number)

/** Returns true for four numbers from 0 to 255 with dots between them. */
export const isIpv4 = (text: string): boolean =>
  /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.|$)){4}$/.test(text) && !text.endsWith(".")
