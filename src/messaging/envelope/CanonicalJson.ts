import { hash } from "node:crypto"

/**
 * Serialises a value as canonical JSON: members sorted by code point on every level, no spaces, non-ASCII characters
 * unescaped. A `RawNumber` keeps its text. Throws for the same values as `JSON.stringify`: cycles, `bigint`, nesting
 * beyond the stack.
 */
export const write = (value: unknown): string => serialize(value) ?? "null"

export const sha256 = (value: unknown): string => hash("sha256", write(value), "hex")

/** Writes members itself, because JavaScript objects put integer keys first. */
const serialize = (value: unknown): string | undefined => {
  if (typeof value !== "object" || value === null || JSON.isRawJSON(value)) return JSON.stringify(value)
  if ("toJSON" in value && typeof value.toJSON === "function") return serialize(value.toJSON(""))
  if (Array.isArray(value)) return `[${value.map((item) => serialize(item) ?? "null").join(",")}]`
  const members: Array<string> = []
  for (const [key, member] of Object.entries(value).sort(([one], [other]) => byCodePoint(one, other))) {
    const text = serialize(member)
    if (text !== undefined) members.push(`${JSON.stringify(key)}:${text}`)
  }
  return `{${members.join(",")}}`
}

/** JavaScript compares UTF-16 units, which places characters beyond U+FFFF before U+E000 to U+FFFF. */
export const byCodePoint = (one: string, other: string): number => {
  const length = Math.min(one.length, other.length)
  for (let at = 0; at < length; at++) {
    const left = one.charCodeAt(at)
    const right = other.charCodeAt(at)
    if (left === right) continue
    const leftPair = isSurrogate(left)
    return leftPair === isSurrogate(right) ? left - right : leftPair ? 1 : -1
  }
  return one.length - other.length
}

const isSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdfff
