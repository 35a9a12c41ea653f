import { backslash, closeBrace, closeBracket, openBrace, openBracket, quote } from "../../policy/facts/JsonScan.ts"
import type { Family } from "../../policy/routes/CanonicalRoute.ts"
import * as TokenUsage from "./TokenUsage.ts"

/** Providers report the usage at the end of an answer. So much of one that is too long to be kept is read for it. */
export const tailBytes = 65_536

/** A `usage` object has some hundred bytes. */
const maxObjectBytes = 4_096

const usageName = Buffer.from('"usage"')

/**
 * The usage that the end of a long JSON text reports. Inside a string the name's quotes are escaped, so it is a member.
 * A client may have had an object echoed that bears the same name: of several the one with the most tokens counts,
 * which can only raise that client's own bill.
 */
export const readTail = (family: Family, tail: Buffer): TokenUsage.ReportedUsage | undefined => {
  let largest: TokenUsage.ReportedUsage | undefined
  let at = tail.lastIndexOf(usageName)
  for (let candidates = 0; at !== -1 && candidates < maxCandidates; candidates++) {
    const open = objectStart(tail, at + usageName.length)
    const end = open === undefined ? undefined : objectEnd(tail, open)
    if (open !== undefined && end !== undefined) {
      const found = TokenUsage.read(family, { usage: parse(tail.toString("utf8", open, end)) })
      if (found !== undefined && tokensOf(found) > (largest === undefined ? 0 : tokensOf(largest))) largest = found
    }
    at = at === 0 ? -1 : tail.lastIndexOf(usageName, at - 1)
  }
  return largest
}

/** More than any honest answer holds: such objects may stand in each other, and each is parsed. */
const maxCandidates = 64

/**
 * The usage of a whole JSON answer, read without the rest of it, which may be a thousand numbers: the last member
 * `usage` of the text, where that is a member of its outermost object. `undefined`: it cannot be told so, and all of the
 * answer is to be parsed.
 */
export const readWhole = (family: Family, answer: Buffer): TokenUsage.ReportedUsage | undefined => {
  const at = lastUsageIndex(answer)
  const open = at === -1 ? undefined : objectStart(answer, at + usageName.length)
  const end = open === undefined ? undefined : objectEnd(answer, open)
  if (open === undefined || end === undefined || !isMemberOfOutermost(answer, end) || mayReportElsewhere(answer))
    return undefined
  return TokenUsage.read(family, { usage: parse(answer.toString("utf8", open, end)) })
}

/** Where the last member `usage` of the text begins, from its end on: it is near. */
const lastUsageIndex = (answer: Buffer): number => {
  for (let at = answer.length - usageName.length; at >= 0; at--) {
    // most bytes differ from the rarest of its letters
    if (answer[at + 4] === letterG && answer.compare(usageName, 0, usageName.length, at, at + usageName.length) === 0)
      return at
  }
  return -1
}

const letterG = 0x67

/** What reports a cost stands elsewhere in an answer, and an escape may hide any name. */
const mayReportElsewhere = (answer: Buffer): boolean =>
  answer.indexOf(costName) !== -1 || (answer.indexOf(backslash) !== -1 && answer.indexOf(escape) !== -1)

const costName = Buffer.from('_cost"')
const escape = Buffer.from("\\u")

/** Whether behind `from` nothing ends but the outermost object, and the text with it. */
const isMemberOfOutermost = (bytes: Buffer, from: number): boolean => {
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

const tokensOf = ({ usage }: TokenUsage.ReportedUsage): number => (usage.input ?? 0) + (usage.output ?? 0)

/** Where the object opens that is the member's value: most events of a stream say `"usage":null`. */
export const objectStart = (bytes: Buffer, from: number): number | undefined => {
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte === openBrace) return at
    if (byte !== 0x3a && byte > 0x20) return undefined
  }
  return undefined
}

const objectEnd = (bytes: Buffer, from: number): number | undefined => {
  const limit = Math.min(bytes.length, from + maxObjectBytes)
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
