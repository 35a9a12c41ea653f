import { closeBrace, closeBracket, comma, openBrace, openBracket, quote, stringEnd } from "./JsonScan.ts"

interface Member {
  readonly key: string
  readonly escaped: boolean
  readonly start: number
  readonly valueStart: number
  readonly end: number
}

/** Finds the members of valid JSON, so that the text can be edited. Other bytes, such as digits, stay unchanged. */
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

/** Sets the member `key` to `json`. Replaces its last occurrence, or adds it as the first member. */
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

const scalarEnd = (text: string, from: number): number => {
  let at = from
  for (; at < text.length; at++) {
    const character = text.charCodeAt(at)
    if (character <= 0x20 || character === comma || character === closeBrace || character === closeBracket) break
  }
  return at
}
