import type { Family } from "./model/CanonicalRoute.ts"
import { backslash, closeBrace, openBrace, quote } from "./model/JsonScan.ts"
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
  for (let at = tail.indexOf(name); at !== -1; at = tail.indexOf(name, at + 1)) {
    const open = objectAfter(tail, at + name.length)
    const end = open === undefined ? undefined : objectEnd(tail, open)
    if (open === undefined || end === undefined) continue
    const found = TokenUsage.read(family, { usage: parse(tail.toString("utf8", open, end)) })
    if (found !== undefined && tokensOf(found) > (most === undefined ? 0 : tokensOf(most))) most = found
  }
  return most
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
    if (byte === quote) for (at++; at < limit && bytes[at] !== quote; at++) if (bytes[at] === backslash) at++
    if (byte === openBrace) depth++
    else if (byte === closeBrace && --depth === 0) return at + 1
  }
  return undefined
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
