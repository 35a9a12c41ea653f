import { backslash, closeBrace, closeBracket, colon, comma, openBrace, openBracket, quote } from "./JsonScan.ts"

/** Tool schemas nest to about 60 levels. */
export const maxDepth = 256

/** Keeps parsing below tens of milliseconds at any byte limit. An embeddings request of 300,000 token IDs fits. */
export const maxWeight = 1_000_000
const structureWeight = 10

export interface JsonShape {
  readonly excess: string | undefined
  /** Members of the top-level object, counting duplicates; `undefined` if one of their names is escaped. */
  readonly members: number | undefined
  /** Members of all objects, counting duplicates. */
  readonly allMembers: number
}

/** `JSON.parse` takes 0.1 s and much memory for a megabyte of brackets. The text need not be valid JSON. */
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
    // skips most bytes outside strings: letters, digits and blanks
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

/** Parsing a megabyte of brackets blocks the event loop for 0.3 s. */
export const isExcessive = (json: Uint8Array): boolean =>
  json.length > smallJsonBytes && shapeOf(json).excess !== undefined

/** Below this size, measuring costs more than parsing. */
const smallJsonBytes = 4_096

export const excessOf = (json: string, weightLimit = maxWeight): string | undefined =>
  shapeOf(Buffer.from(json), weightLimit).excess

const tooDeep: JsonShape = {
  excess: `The JSON nests deeper than ${maxDepth} levels, which is the limit. Send it with less nesting.`,
  members: undefined,
  allMembers: 0
}

const tooHeavy = (limit: number): JsonShape => ({
  excess: `The JSON exceeds the limit of ${limit} values (each object, array and member counts as ${structureWeight}). Send it in parts.`,
  members: undefined,
  allMembers: 0
})
