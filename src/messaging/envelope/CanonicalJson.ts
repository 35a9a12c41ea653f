import { hash } from "node:crypto"

/**
 * Serialises a value as canonical JSON without spaces. Members are sorted by code point on every level. Non-ASCII
 * characters are not escaped. A `RawNumber` keeps its digits. Throws for cycles, `bigint` and too deep nesting.
 */
export const write = (value: unknown): string => serialize(value) ?? "null"

export const sha256 = (value: unknown): string => hash("sha256", write(value), "hex")

/** `JSON.stringify` cannot sort members, because JavaScript objects list integer keys first. */
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

/** Compares texts by code point. JavaScript's `<` compares UTF-16 units, and would sort U+10000 before U+E000. */
const byCodePoint = (one: string, other: string): number => {
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
