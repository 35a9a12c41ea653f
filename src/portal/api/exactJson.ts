/**
 * Numbers from 2^53 on, such as 64-bit ids, do not fit into the numbers of JavaScript. Where the browser can, they are
 * kept as they were written, so that an edited message differs in nothing but the edit.
 */
interface RawJson {
  readonly rawJSON?: (text: string) => unknown
}

const { rawJSON }: RawJson = JSON

/** Texts without such a number are parsed as usual, which is faster. */
const mayHaveLongNumber = /\d{16}/

const exact = (_: string, value: unknown, { source }: { readonly source?: string } = {}): unknown =>
  typeof value === "number" && source !== undefined && isInteger(source) && !Number.isSafeInteger(value)
    ? (rawJSON?.(source) ?? value)
    : value

const isInteger = (text: string): boolean => /^-?\d+$/.test(text)

export const parseExact = (text: string) => (mayHaveLongNumber.test(text) ? JSON.parse(text, exact) : JSON.parse(text))
