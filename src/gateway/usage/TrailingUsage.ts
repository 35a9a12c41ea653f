import { backslash, closeBrace, closeBracket, openBrace, openBracket, quote } from "../../policy/facts/JsonScan.ts"
import type { Family } from "../../policy/routes/CanonicalRoute.ts"
import * as TokenUsage from "./TokenUsage.ts"

/** Only this many last bytes of a long response are kept, because providers report usage at the end. */
export const tailBytes = 65_536

const maxObjectBytes = 4_096

const usageName = Buffer.from('"usage"')

/** Returns the largest `usage` object. A client could make the upstream echo a smaller, false one. */
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

/** Bounds the time, because nested objects are parsed once for each level. */
const maxCandidates = 64

/**
 * Parses only the `usage` object, because the body may be long, such as the numbers of embeddings. Returns `undefined`
 * if the last `usage` is not a member of the outermost object.
 */
export const readWhole = (family: Family, body: Buffer): TokenUsage.ReportedUsage | undefined => {
  const at = lastUsageIndex(body)
  const open = at === -1 ? undefined : objectStart(body, at + usageName.length)
  const end = open === undefined ? undefined : objectEnd(body, open)
  if (open === undefined || end === undefined || !isMemberOfOutermost(body, end) || mayReportElsewhere(body))
    return undefined
  return TokenUsage.read(family, { usage: parse(body.toString("utf8", open, end)) })
}

/** Searches backwards, because providers write the member near the end. */
const lastUsageIndex = (body: Buffer): number => {
  for (let at = body.length - usageName.length; at >= 0; at--) {
    // Comparing `g` first is fast, because it is the rarest letter of `usage`.
    if (body[at + 4] === letterG && body.compare(usageName, 0, usageName.length, at, at + usageName.length) === 0)
      return at
  }
  return -1
}

const letterG = 0x67

/** A body with a reported cost, or with escapes that may hide a member's name, must be parsed as a whole. */
const mayReportElsewhere = (body: Buffer): boolean =>
  body.indexOf(costName) !== -1 || (body.indexOf(backslash) !== -1 && body.indexOf(escape) !== -1)

const costName = Buffer.from('_cost"')
const escape = Buffer.from("\\u")

/** Returns true if the value that ends at `from` belongs to the outermost object and no text follows that object. */
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

/** Returns where the value of `"usage"` begins if it is an object. Most stream events contain `"usage":null`. */
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

const stringEnd = (bytes: Buffer, from: number, limit: number): number => {
  let at = from + 1
  while (at < limit && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1
  return at
}

export const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
