import { isDigit, isHexDigit } from "../detect/lexing/Characters.ts"

type NumberState =
  | "minus"
  | "zero"
  | "integer"
  | "point"
  | "fraction"
  | "exponent"
  | "exponent sign"
  | "exponent digits"

type State =
  | "start"
  | "fence"
  | "value"
  | "first value"
  | "key"
  | "first key"
  | "colon"
  | "after value"
  | "string"
  | "literal"
  | NumberState
  /** The JSON value is complete. */
  | "done"
  | "prose"

/** What `add` returns, unless it is a character of a string. */
export const structure = -1
export const stringOpened = -2
export const stringClosed = -3

/** A value that nests more deeply counts as prose. */
const maxNesting = 256

/**
 * Follows a text that is one object or array of JSON, objects one after the other, or prose. The text counts as JSON up to
 * the first character that JSON does not allow there. White space may stand before, and a fence of Markdown around.
 */
export class JsonText {
  #state: State = "start"
  /** The open containers: true for an object. */
  readonly #containers: Array<boolean> = []
  #isKey = false
  #isFenced = false
  /** The next character of the fence or of `true`, `false` or `null`. */
  #expected = ""
  #position = 0
  /** The number of characters of an escape that follow: -1 after a backslash. */
  #escape = 0
  #hex = 0
  #delimiters = 0
  #isList = false

  get isProse(): boolean {
    return this.#state === "prose"
  }

  /** True if the text ended as a complete JSON value. */
  get isDone(): boolean {
    return this.#state === "done"
  }

  /** True inside the JSON value and outside its strings. */
  get isStructure(): boolean {
    switch (this.#state) {
      case "start":
      case "fence":
      case "string":
      case "done":
      case "prose":
        return false
      default:
        return true
    }
  }

  /** The number of commas and closing brackets so far. */
  get delimiters(): number {
    return this.#delimiters
  }

  /** True if the text so far is an array of nothing but numbers, which may also begin prose: `[5] is my number`. */
  get isList(): boolean {
    return this.#isList
  }

  begin(): void {
    this.#state = "start"
    this.#containers.length = 0
    this.#isFenced = false
    this.#position = 0
    this.#escape = 0
    this.#isList = false
  }

  end(): void {
    if (this.#state !== "done") this.#state = "prose"
  }

  /** Returns the character of a string that `code` completes, or `structure`, `stringOpened` or `stringClosed`. */
  add(code: number): number {
    const state = this.#state
    if (state === "string") return this.#addToString(code)
    if (state === "prose") return structure
    this.#state = this.#next(state, code)
    return this.#state === "string" ? stringOpened : structure
  }

  #next(state: State, code: number): State {
    switch (state) {
      case "start":
        return this.#start(code)
      case "fence":
        return this.#continueFence(code)
      case "done":
        return this.#afterJson(code)
      case "literal":
        if (code !== this.#expected.codePointAt(this.#position)) return "prose"
        return ++this.#position === this.#expected.length ? "after value" : "literal"
      case "colon":
        return isSpace(code) ? state : code === colon ? "value" : "prose"
      case "first key":
        if (code === closeBrace) return this.#close(true)
        return this.#key(state, code)
      case "key":
        return this.#key(state, code)
      case "first value":
        if (code === closeBracket) return this.#close(false)
        return this.#value(state, code)
      case "value":
        return this.#value(state, code)
      case "after value":
        return this.#afterValue(code)
      default:
        return this.#number(state, code)
    }
  }

  #start(code: number): State {
    if (isSpace(code) || code === byteOrderMark) return "start"
    if (code === openBrace || code === openBracket) {
      this.#isList = code === openBracket
      return this.#open(code)
    }
    if (code !== backtick || this.#isFenced) return "prose"
    this.#expected = fence
    this.#position = 1
    return "fence"
  }

  /** The fence is ```` ``` ```` or ```` ```json ````. */
  #continueFence(code: number): State {
    const expected = this.#expected.codePointAt(this.#position)
    const isComplete = this.#position === 3 || this.#position === this.#expected.length
    if (isComplete && isSpace(code)) {
      this.#isFenced = true
      return "start"
    }
    if (code !== expected && (expected === backtick || (code | 0x20) !== expected)) return "prose"
    this.#position++
    return "fence"
  }

  #afterJson(code: number): State {
    if (isSpace(code)) return "done"
    if (this.#isFenced && code === backtick) this.#isList = false
    else if (code === openBrace && !this.#isList && !this.#isFenced) return this.#open(code)
    return "prose"
  }

  #open(code: number): State {
    if (this.#containers.length === maxNesting) return "prose"
    const isObject = code === openBrace
    if (isObject) this.#isList = false
    this.#containers.push(isObject)
    return isObject ? "first key" : "first value"
  }

  #close(isObject: boolean): State {
    if (this.#containers.pop() !== isObject) return "prose"
    this.#delimiters++
    return this.#containers.length === 0 ? "done" : "after value"
  }

  #key(state: State, code: number): State {
    if (isSpace(code)) return state
    this.#isKey = true
    return code === quote ? "string" : "prose"
  }

  #value(state: State, code: number): State {
    if (isSpace(code)) return state
    if (code === openBrace || code === openBracket) return this.#open(code)
    if (code === minus) return "minus"
    if (isDigit(code)) return code === zero ? "zero" : "integer"
    this.#isList = false
    this.#isKey = false
    if (code === quote) return "string"
    const literal = literals.get(code)
    if (literal === undefined) return "prose"
    this.#expected = literal
    this.#position = 1
    return "literal"
  }

  #afterValue(code: number): State {
    if (isSpace(code)) return "after value"
    if (code === closeBrace || code === closeBracket) return this.#close(code === closeBrace)
    if (code !== comma) return "prose"
    this.#delimiters++
    return this.#containers.at(-1) === true ? "key" : "value"
  }

  #number(state: State, code: number): State {
    switch (state) {
      case "minus":
        return isDigit(code) ? (code === zero ? "zero" : "integer") : "prose"
      case "zero":
      case "integer":
        if (state === "integer" && isDigit(code)) return "integer"
        if (code === point) return "point"
        return isExponent(code) ? "exponent" : this.#afterValue(code)
      case "point":
        return isDigit(code) ? "fraction" : "prose"
      case "fraction":
        if (isDigit(code)) return "fraction"
        return isExponent(code) ? "exponent" : this.#afterValue(code)
      case "exponent":
        if (code === minus || code === plus) return "exponent sign"
        return isDigit(code) ? "exponent digits" : "prose"
      case "exponent sign":
        return isDigit(code) ? "exponent digits" : "prose"
      default:
        return isDigit(code) ? "exponent digits" : this.#afterValue(code)
    }
  }

  #addToString(code: number): number {
    if (this.#escape === -1) return this.#addEscaped(code)
    if (this.#escape > 0) {
      if (isHexDigit(code)) {
        this.#hex = this.#hex * 16 + (isDigit(code) ? code - zero : (code | 0x20) - 0x57)
        return --this.#escape === 0 ? this.#hex : structure
      }
      this.#escape = 0
    }
    if (code === backslash) {
      this.#escape = -1
      return structure
    }
    if (code !== quote) return code
    this.#state = this.#isKey ? "colon" : "after value"
    return stringClosed
  }

  #addEscaped(code: number): number {
    this.#escape = 0
    if (code !== letterU) return escapes.get(code) ?? code
    this.#escape = 4
    this.#hex = 0
    return structure
  }
}

const isSpace = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
const isExponent = (code: number): boolean => (code | 0x20) === 0x65

const fence = "```json"
const backtick = 0x60
const byteOrderMark = 0xfeff
const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a
const minus = 0x2d
const plus = 0x2b
const point = 0x2e
const zero = 0x30
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d
const letterU = 0x75

const literals: ReadonlyMap<number, string> = new Map(
  ["true", "false", "null"].map((literal) => [literal.codePointAt(0) ?? 0, literal])
)

const escapes: ReadonlyMap<number, number> = new Map([
  [0x62, 0x08],
  [0x66, 0x0c],
  [0x6e, 0x0a],
  [0x72, 0x0d],
  [0x74, 0x09]
])
