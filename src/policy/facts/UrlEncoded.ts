import { unescape } from "node:querystring"

/** One `name=value` of a query or of a form in `application/x-www-form-urlencoded`, as it is written. */
export interface Pair {
  readonly name: string
  readonly value: string
}

/**
 * The pairs of `text`. Some readers end a pair at `;` too, which no client leaves unescaped. The text is split by hand,
 * because `URLSearchParams` of Node.js takes quadratic time over names without `=`.
 */
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

/** A name or a value with its escapes read. Bytes that are no UTF-8 become U+FFFD; broken escapes stay as they are. */
export const decoded = (text: string): string => unescape(text.replaceAll("+", " "))

/** How many bytes a value has once its escapes are read. */
export const decodedBytes = (value: string): number => value.replace(escapes, ".").length

const escapes = /%[0-9a-f]{2}/gi
