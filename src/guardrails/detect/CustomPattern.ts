import { Result } from "effect"
import { RE2JS } from "re2js"
import { type Detector, type Matcher, none, wait } from "./Detector.ts"
import { dash, edge, isControl, normalCode } from "./lexing/Characters.ts"
import type { NormalText } from "./lexing/NormalText.ts"
import { stringOf } from "./Numbers.ts"

const maxPattern = 500
/** The time of a search grows with it. */
const maxProgram = 1000
/** The size of the program times `max_length`: a character of the worst text then takes at most 0.1 ms. */
const maxSteps = 16_000
const maxMaxLength = 256
const defaultMaxLength = 64

/**
 * An operator's pattern. At each place it is matched as if the text ended `max_length` + 1 characters later. It also
 * sees the character before. A match that is empty or longer than `max_length` does not count.
 */
export class CustomPattern implements Detector {
  readonly kind: string
  readonly maxCharacters: number
  readonly source: string
  readonly canStart = undefined
  readonly pattern: RE2JS

  private constructor(kind: string, source: string, pattern: RE2JS, maxCharacters: number) {
    this.kind = kind
    this.pattern = pattern
    this.maxCharacters = maxCharacters
    this.source = source
  }

  /** `field` is where the item stands in the configuration. */
  static of(field: string, item: unknown): Result.Result<CustomPattern, string> {
    if (typeof item !== "object" || item === null) {
      return Result.fail(`${field} must be an object with "name" and "pattern".`)
    }
    const { max_length = defaultMaxLength, name, pattern, ...others }: Partial<Record<string, unknown>> = { ...item }
    const [unknown] = Object.keys(others)
    if (unknown !== undefined) {
      return Result.fail(`${field}.${unknown.slice(0, 64)} is unknown; the fields are name, pattern and max_length.`)
    }
    if (typeof name !== "string" || !/^[A-Z][A-Z0-9_]{0,31}$/.test(name)) {
      return Result.fail(`${field}.name must be 1 to 32 characters of A-Z, 0-9 and _ and begin with a letter.`)
    }
    if (
      typeof max_length !== "number" ||
      !Number.isInteger(max_length) ||
      max_length < 1 ||
      max_length > maxMaxLength
    ) {
      return Result.fail(`${field}.max_length must be an integer from 1 to ${maxMaxLength}.`)
    }
    if (typeof pattern !== "string" || pattern.length === 0 || pattern.length > maxPattern) {
      return Result.fail(`${field}.pattern must be a text of 1 to ${maxPattern} characters.`)
    }
    return Result.map(compile(field, pattern), (compiled) => new CustomPattern(name, pattern, compiled, max_length))
  }

  /** Returns why a new configuration may not have this pattern, beginning with the field. */
  mistake(): string | undefined {
    const limit = Math.floor(maxSteps / this.pattern.programSize())
    if (this.maxCharacters > limit) {
      return `pattern takes too long with max_length ${this.maxCharacters}: lower max_length to ${limit}, or repeat parts of the pattern less often.`
    }
    return literalMistake(this.source)
  }

  matcher(text: NormalText): Matcher {
    return new CustomMatcher(text, this)
  }
}

const compile = (field: string, pattern: string): Result.Result<RE2JS, string> =>
  Result.flatMap(
    Result.try({
      try: () => RE2JS.compile(pattern),
      catch: (cause) =>
        `${field}.pattern is not a pattern of RE2: ${cause instanceof Error ? cause.message : "unreadable"}.`
    }),
    (compiled) => {
      if (compiled.matcher("").find()) return Result.fail(`${field}.pattern must not match the empty text.`)
      return compiled.programSize() > maxProgram
        ? Result.fail(`${field}.pattern is too large: repeat parts of it less often.`)
        : Result.succeed(compiled)
    }
  )

/** A pattern never matches characters for which texts have others when they are searched. */
const literalMistake = (pattern: string): string | undefined => {
  for (const [literal, braced, short] of pattern.matchAll(/\\x\{([0-9a-f]{1,6})\}|\\x([0-9a-f]{2})|\\[^x]|[^\\]/giu)) {
    const hex = braced ?? short
    const codePoint = hex === undefined ? (literal.codePointAt(0) ?? 0) : Number.parseInt(hex, 16)
    if (codePoint > 0x10ffff) continue
    const normal = normalCode(codePoint)
    // control characters are mostly the ends of a range
    if (normal === codePoint || isControl(codePoint)) continue
    if (normal === undefined)
      return "pattern has an invisible character, but texts are searched without them: remove it."
    const character = normal === dash ? "-" : String.fromCodePoint(normal)
    return `pattern has ${JSON.stringify(literal)}, which texts have as ${JSON.stringify(character)} when they are searched: write that.`
  }
  return undefined
}

class CustomMatcher implements Matcher {
  readonly #text: NormalText
  readonly #pattern: CustomPattern
  /** No value begins before this index. */
  #nextStart = 0

  constructor(text: NormalText, pattern: CustomPattern) {
    this.#text = text
    this.#pattern = pattern
  }

  match(start: number): number {
    if (start < this.#nextStart) return none
    const { maxCharacters } = this.#pattern
    const text = this.#text
    const enough = start + maxCharacters + 1
    const windowEnd = Math.min(text.windowEnd(start), enough)
    if (windowEnd < enough && text.isOpen(start)) return wait
    // one search looks ahead for several places; only where it finds something does the exact window decide
    const end = Math.min(text.end, enough + maxCharacters)
    const found = this.#find(start, end)
    const decided = text.isComplete && end === text.end ? end : Math.max(start + 1, end - maxCharacters)
    this.#nextStart = found === undefined ? decided : Math.min(found.start, decided)
    if (found?.start !== start) return none
    const exact = end === windowEnd ? found : this.#find(start, windowEnd)
    const limit = text.isComplete && windowEnd === text.end ? Math.min(windowEnd, enough - 1) : windowEnd - 1
    return exact?.start === start && exact.end > start && exact.end <= limit ? exact.end : none
  }

  /** Returns the first match at or after `start`. */
  #find(start: number, end: number): { readonly start: number; readonly end: number } | undefined {
    const base = this.#text.code(start - 1) === edge ? start : start - 1
    const matcher = this.#pattern.pattern.matcher(stringOf(this.#text, base, end))
    return matcher.find(start - base) ? { start: base + matcher.start(), end: base + matcher.end() } : undefined
  }
}
