import { Option, Result } from "effect"
import { RE2JS } from "re2js"

const maxLength = 500
/** The number of instructions that a pattern may be compiled to, estimated before it is compiled. */
const maxInstructions = 3_000
/** To compile a pattern takes as long as so many steps of a check, and so many more for each instruction. */
const stepsPerPattern = 10_000
const stepsPerInstruction = 20

/** A pattern of a schema. Its search takes time in proportion to the text. */
export interface SchemaPattern {
  /** The price of a search per character of the text. */
  readonly size: number
  /** `undefined` if JavaScript, in which handlers match, might decide otherwise. */
  readonly matches: (text: string) => boolean | undefined
}

/**
 * Compiles the patterns of one schema. JavaScript's engine may take exponential time for a pattern that somebody else
 * wrote, so patterns are matched by RE2. `undefined`: RE2 has no such pattern, as with a look-ahead, or it is too large.
 */
export class SchemaPatterns {
  readonly #compiled = new Map<string, SchemaPattern | undefined>()

  /** Returns how many steps of a check `of` takes. */
  priceOf(source: string): number {
    if (this.#compiled.has(source)) return 1
    const instructions = instructionsOf(source)
    return instructions > maxInstructions ? 1 : stepsPerPattern + stepsPerInstruction * instructions
  }

  of(source: string): SchemaPattern | undefined {
    if (this.#compiled.has(source)) return this.#compiled.get(source)
    const pattern = compile(source)
    this.#compiled.set(source, pattern)
    return pattern
  }
}

const compile = (source: string): SchemaPattern | undefined => {
  if (backReference.test(source) || instructionsOf(source) > maxInstructions) return undefined
  const compiled = Option.getOrUndefined(
    Result.getSuccess(Result.try(() => RE2JS.compile(RE2JS.translateRegExp(source))))
  )
  if (compiled === undefined) return undefined
  const differs = differingClass.test(source)
  return {
    size: compiled.programSize(),
    matches: (text) =>
      !text.isWellFormed() || (differs && differingText.test(text)) ? undefined : compiled.matcher(text).find()
  }
}

/** RE2 would take the digit or the `k` for a letter. */
const backReference = /\\[1-9k]/

/** The white space of JavaScript has more characters than that of RE2, and its `.` leaves more out. */
const differingClass = /\\s|\\S|\./
const differingText = /[\v\r\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]/

/** RE2 refuses counts above 1,000, also of repetitions within repetitions. */
const maxRepetition = 1_000

/** Returns at least as many instructions as the pattern may have. A repetition is written out as often as it counts. */
const instructionsOf = (source: string): number => {
  if (source.length > maxLength) return Number.POSITIVE_INFINITY
  const counts = Array.from(source.matchAll(/(\)?)\{(\d{1,9})(?:,(\d{0,9}))?\}/g), ([, group, least, most]) => ({
    isGroup: group !== "",
    count: Math.max(Number(least), Number(most || 0))
  }))
  const repeated = counts.some(({ isGroup }) => isGroup)
    ? Math.min(
        maxRepetition,
        counts.reduce((product, { count }) => product * Math.max(1, count), 1)
      )
    : Math.max(1, ...counts.map(({ count }) => count))
  return source.length * repeated
}
