import { closeBrace, closeBracket, comma, openBrace, openBracket, quote, stringEnd } from "./JsonScan.ts"

/** One member of a JSON object, by its place in the text. */
export interface Member {
  readonly key: string
  /** Its text has escapes. */
  readonly escaped: boolean
  /** Where the key's opening quote stands. */
  readonly start: number
  readonly valueStart: number
  /** Just behind the value. */
  readonly end: number
}

/**
 * The members of the top-level object of `text`, which `JSON.parse` has accepted: this walks, it does not validate.
 * With it a member is replaced or removed and every other byte stays as the client wrote it: numbers keep their digits,
 * keys their order.
 */
export const topLevel = (text: string): ReadonlyArray<Member> => {
  const members: Array<Member> = []
  let at = skipSpace(text, 0)
  if (text.charCodeAt(at) !== openBrace) return members
  at = skipSpace(text, at + 1)
  while (text.charCodeAt(at) === quote) {
    const start = at
    const keyEnd = stringEnd(text, at)
    const key = text.slice(start + 1, keyEnd - 1)
    at = skipSpace(text, keyEnd)
    const valueStart = skipSpace(text, at + 1)
    const end = valueEnd(text, valueStart)
    const escaped = key.includes("\\")
    members.push({ key: escaped ? JSON.parse(text.slice(start, keyEnd)) : key, escaped, start, valueStart, end })
    at = skipSpace(text, end)
    if (text.charCodeAt(at) !== comma) break
    at = skipSpace(text, at + 1)
  }
  return members
}

/** The items of the array that `text` is, each as its text. */
export const items = (text: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  let at = skipSpace(text, 0)
  if (text.charCodeAt(at) !== openBracket) return found
  at = skipSpace(text, at + 1)
  while (at < text.length && text.charCodeAt(at) !== closeBracket) {
    const end = valueEnd(text, at)
    found.push(text.slice(at, end))
    at = skipSpace(text, end)
    if (text.charCodeAt(at) === comma) at = skipSpace(text, at + 1)
  }
  return found
}

/** `text` without the members that `drop` names, each with the comma that led to it (the first: that led from it). */
export const without = (text: string, drop: (key: string) => boolean): string => {
  const members = topLevel(text)
  const [head] = members
  const tail = members.at(-1)
  if (head === undefined || tail === undefined || !members.some(({ key }) => drop(key))) return text
  let kept = ""
  let before = head.start
  for (const { end, key, start } of members) {
    if (!drop(key)) kept += text.slice(kept === "" ? start : before, end)
    before = end
  }
  return text.slice(0, head.start) + kept + text.slice(tail.end)
}

/** `text` with `key` set to `json`: in the place of its last occurrence, or as the first member. */
export const withMember = (text: string, key: string, json: string): string => {
  const members = topLevel(text)
  const found = members.findLast((member) => member.key === key)
  if (found !== undefined) return text.slice(0, found.valueStart) + json + text.slice(found.end)
  const open = text.indexOf("{") + 1
  return `${text.slice(0, open)}${JSON.stringify(key)}:${json}${members.length === 0 ? "" : ","}${text.slice(open)}`
}

const skipSpace = (text: string, from: number): number => {
  let at = from
  while (text.charCodeAt(at) <= 0x20) at++
  return at
}

const valueEnd = (text: string, from: number): number => {
  const first = text.charCodeAt(from)
  if (first === quote) return stringEnd(text, from)
  if (first !== openBrace && first !== openBracket) return scalarEnd(text, from)
  let depth = 0
  let at = from
  for (;;) {
    const character = text.charCodeAt(at)
    if (character === quote) {
      at = stringEnd(text, at)
      continue
    }
    if (character === openBrace || character === openBracket) depth++
    else if (character === closeBrace || character === closeBracket) depth--
    at++
    if (depth === 0) return at
  }
}

/** Just behind a number, `true`, `false` or `null`, which ends before space, a comma or a bracket. */
const scalarEnd = (text: string, from: number): number => {
  let at = from
  for (; at < text.length; at++) {
    const character = text.charCodeAt(at)
    if (character <= 0x20 || character === comma || character === closeBrace || character === closeBracket) break
  }
  return at
}
