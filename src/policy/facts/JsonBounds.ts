import { backslash, closeBrace, closeBracket, colon, comma, openBrace, openBracket, quote } from "./JsonScan.ts"

/** JSON schemas of tools nest to about 60 levels. */
export const maxDepth = 256

/**
 * How much a body of any length may hold, so that no raised byte limit makes one body cost more than tens of
 * milliseconds: long strings and numbers are cheap, members and containers are not. An embeddings request of 300,000
 * token ids stays below it.
 */
export const maxWeight = 1_000_000
const structureWeight = 10

/** What one pass over JSON text finds before anything parses it. */
export interface JsonShape {
  /** Why the text is not parsed, in words for its sender. */
  readonly excess: string | undefined
  /**
   * How many members the top-level object has, those of one name counted apart; `undefined` where one of their names is
   * written with escapes.
   */
  readonly members: number | undefined
  /** The members of all objects, those of one name counted apart. */
  readonly allMembers: number
}

/**
 * Measures JSON text. `JSON.parse` takes a tenth of a second and many times the memory for a megabyte of brackets, and
 * any key may send one, so nesting and number of values are bounded here. The text may be none that `JSON.parse`
 * accepts. Of bytes, and without a list of what is in them: every body comes by here, and few have more to tell.
 */
export const shapeOf = (json: Uint8Array, weightLimit = maxWeight): JsonShape => {
  let members = 0
  let allMembers = 0
  let depth = 0
  let weight = 0
  let escaped = false
  let anyEscaped = false
  const { length } = json
  for (let at = 0; at < length; at++) {
    const byte = json[at]!
    // letters, digits and blanks outside of strings, which are most of what is left
    if (byte < quote || (byte > colon && byte < openBracket)) continue
    switch (byte) {
      case quote:
        escaped = false
        for (at++; at < length; at++) {
          const inside = json[at]!
          if (inside === quote) break
          if (inside !== backslash) continue
          escaped = true
          at++
        }
        break
      case comma:
        weight++
        break
      case openBrace:
      case openBracket:
        weight += structureWeight
        if (++depth > maxDepth) return tooDeep
        if (weight > weightLimit) return tooHeavy(weightLimit)
        break
      case closeBrace:
      case closeBracket:
        depth--
        break
      case colon:
        weight += structureWeight
        allMembers++
        if (depth > 1) break
        anyEscaped ||= escaped
        members++
    }
  }
  if (weight > weightLimit) return tooHeavy(weightLimit)
  return { excess: undefined, members: anyEscaped ? undefined : members, allMembers }
}

/**
 * Whether parsing what an upstream sent would take too long: a megabyte of brackets takes a third of a second, in which
 * nobody else is served.
 */
export const isExcessive = (json: Uint8Array): boolean =>
  json.length > smallJsonBytes && shapeOf(json).excess !== undefined

/** For less, looking costs more than it spares. */
const smallJsonBytes = 4_096

/** For texts that are only in memory as text. */
export const excessOf = (json: string, weightLimit = maxWeight): string | undefined =>
  shapeOf(Buffer.from(json), weightLimit).excess

const tooDeep: JsonShape = {
  excess: `The JSON nests deeper than ${maxDepth} levels, which is the limit. Send it with less nesting.`,
  members: undefined,
  allMembers: 0
}

const tooHeavy = (limit: number): JsonShape => ({
  excess: `The JSON holds too many values: at most ${limit}, of which each object, array and member counts for ${structureWeight}. Send it in parts.`,
  members: undefined,
  allMembers: 0
})
