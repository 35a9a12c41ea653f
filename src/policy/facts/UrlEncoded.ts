import { unescape } from "node:querystring"

interface Pair {
  readonly name: string
  readonly value: string
}

/** Splits at `;` too, as some parsers do. `URLSearchParams` of Node.js takes quadratic time for names without `=`. */
export function* pairs(text: string): Generator<Pair> {
  const separated = text.replaceAll(";", "&")
  for (let start = 0; start < separated.length; ) {
    const next = separated.indexOf("&", start)
    const end = next === -1 ? separated.length : next
    if (end > start) yield pairOf(separated.slice(start, end))
    start = end + 1
  }
}

const pairOf = (text: string): Pair => {
  const equals = text.indexOf("=")
  return equals === -1 ? { name: text, value: "" } : { name: text.slice(0, equals), value: text.slice(equals + 1) }
}

/** Invalid UTF-8 becomes U+FFFD. Invalid escapes stay unchanged. */
export const decoded = (text: string): string => unescape(text.replaceAll("+", " "))

export const decodedBytes = (value: string): number => value.replace(escapes, ".").length

const escapes = /%[0-9a-f]{2}/gi
