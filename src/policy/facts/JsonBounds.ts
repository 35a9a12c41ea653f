import { backslash, closeBrace, closeBracket, colon, comma, openBrace, openBracket, quote } from "./JsonScan.ts"

/** Real tool schemas nest to about 60 levels. */
export const maxDepth = 256

/** Keeps parsing below tens of milliseconds. An embeddings request of 300,000 token ids fits. */
export const maxWeight = 1_000_000
const structureWeight = 10

export interface JsonShape {
  readonly excess: string | undefined
  /** The number of members of the top-level object, with duplicates. `undefined` if a name is escaped. */
  readonly members: number | undefined
  /** The number of members of all objects, with duplicates. */
  readonly allMembers: number
}

/** Measures a text before parsing. `JSON.parse` takes 0.1 s and much memory for a megabyte of brackets. */
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
    // Skips letters, digits and blanks, which are most bytes outside strings.
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

/** Parsing a megabyte of brackets would block the event loop for 0.3 s. */
export const isExcessive = (json: Uint8Array): boolean =>
  json.length > smallJsonBytes && shapeOf(json).excess !== undefined

/** Measuring a smaller text takes longer than parsing it. */
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
