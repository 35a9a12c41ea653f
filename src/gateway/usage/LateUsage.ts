import { backslash, closeBrace, closeBracket, openBrace, openBracket, quote } from "../../policy/facts/JsonScan.ts"
import type { Family } from "../../policy/routes/CanonicalRoute.ts"
import * as TokenUsage from "./TokenUsage.ts"

/** Providers report the usage at the end of an answer. So much of one that is too long to be kept is read for it. */
export const tailBytes = 65_536

/** A `usage` object has some hundred bytes. */
const mostObject = 4_096

const name = Buffer.from('"usage"')

/**
 * The usage that the end of a long JSON text reports. Inside a string the name's quotes are escaped, so it is a member.
 * A client may have had an object echoed that bears the same name: of several the one with the most tokens counts,
 * which can only raise that client's own bill.
 */
export const read = (family: Family, tail: Buffer): TokenUsage.Reported | undefined => {
  let most: TokenUsage.Reported | undefined
  let at = tail.lastIndexOf(name)
  for (let looked = 0; at !== -1 && looked < mostLooked; looked++) {
    const open = objectAfter(tail, at + name.length)
    const end = open === undefined ? undefined : objectEnd(tail, open)
    if (open !== undefined && end !== undefined) {
      const found = TokenUsage.read(family, { usage: parse(tail.toString("utf8", open, end)) })
      if (found !== undefined && tokensOf(found) > (most === undefined ? 0 : tokensOf(most))) most = found
    }
    at = at === 0 ? -1 : tail.lastIndexOf(name, at - 1)
  }
  return most
}

/** More than any honest answer holds: such objects may stand in each other, and each is parsed. */
const mostLooked = 64

/**
 * The usage of a whole JSON answer, read without the rest of it, which may be a thousand numbers: the last member
 * `usage` of the text, where that is a member of its outermost object. `undefined`: it cannot be told so, and all of the
 * answer is to be parsed.
 */
export const ofWhole = (family: Family, answer: Buffer): TokenUsage.Reported | undefined => {
  const at = lastName(answer)
  const open = at === -1 ? undefined : objectAfter(answer, at + name.length)
  const end = open === undefined ? undefined : objectEnd(answer, open)
  if (open === undefined || end === undefined || !closesOnce(answer, end) || saysMore(answer)) return undefined
  return TokenUsage.read(family, { usage: parse(answer.toString("utf8", open, end)) })
}

/** Where the last member `usage` of the text begins, from its end on: it is near. */
const lastName = (answer: Buffer): number => {
  for (let at = answer.length - name.length; at >= 0; at--) {
    // most bytes differ from the rarest of its letters
    if (answer[at + 4] === letterG && answer.compare(name, 0, name.length, at, at + name.length) === 0) return at
  }
  return -1
}

const letterG = 0x67

/** What reports a cost stands elsewhere in an answer, and an escape may hide any name. */
const saysMore = (answer: Buffer): boolean =>
  answer.indexOf(costName) !== -1 || (answer.indexOf(backslash) !== -1 && answer.indexOf(escape) !== -1)

const costName = Buffer.from('_cost"')
const escape = Buffer.from("\\u")

/** Whether behind `from` nothing ends but the outermost object, and the text with it. */
const closesOnce = (bytes: Buffer, from: number): boolean => {
  let depth = 1
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (depth === 0) {
      if (byte > 0x20) return false
    } else if (byte === quote) at = stringEnd(bytes, at, bytes.length)
    else if (byte === openBrace || byte === openBracket) depth++
    else if (byte === closeBrace || byte === closeBracket) depth--
  }
  return depth === 0
}

const tokensOf = ({ usage }: TokenUsage.Reported): number => (usage.input ?? 0) + (usage.output ?? 0)

/** Where the object opens that is the member's value: most events of a stream say `"usage":null`. */
export const objectAfter = (bytes: Buffer, from: number): number | undefined => {
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte === openBrace) return at
    if (byte !== 0x3a && byte > 0x20) return undefined
  }
  return undefined
}

const objectEnd = (bytes: Buffer, from: number): number | undefined => {
  const limit = Math.min(bytes.length, from + mostObject)
  let depth = 0
  for (let at = from; at < limit; at++) {
    const byte = bytes[at]
    if (byte === quote) at = stringEnd(bytes, at, limit)
    else if (byte === openBrace) depth++
    else if (byte === closeBrace && --depth === 0) return at + 1
  }
  return undefined
}

/** The closing quote of the string that opens at `from`, or `limit`. */
const stringEnd = (bytes: Buffer, from: number, limit: number): number => {
  let at = from + 1
  while (at < limit && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1
  return at
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
