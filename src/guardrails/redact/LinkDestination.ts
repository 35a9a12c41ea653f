import { mayBeginAddress } from "./HtmlTag.ts"

type State =
  | "none"
  | "label"
  /** After `](`, with white space only. */
  | "before destination"
  | "in parentheses"
  | "in angle brackets"
  /** After `]:`, with white space only. */
  | "before definition"
  | "definition"
  | "definition in angle brackets"

/**
 * Follows the destinations of Markdown's links and pictures, `[x](destination)`, and of its definitions,
 * `[x]: destination`. All up to the closing parenthesis or a blank line counts as the destination.
 */
export class LinkDestination {
  #state: State = "none"
  #hasAddress = false
  /** The number of open parentheses. */
  #parentheses = 0
  #isEscaped = false
  #isAfterLineFeed = false

  /** True if the destination has begun with more than a word. */
  get hasAddress(): boolean {
    return this.#hasAddress
  }

  get isOpen(): boolean {
    return this.#state !== "none" && this.#state !== "label"
  }

  begin(): void {
    this.#state = "none"
    this.#hasAddress = false
    this.#isEscaped = false
    this.#isAfterLineFeed = false
  }

  copyFrom(other: LinkDestination): void {
    this.#state = other.#state
    this.#hasAddress = other.#hasAddress
    this.#parentheses = other.#parentheses
    this.#isEscaped = other.#isEscaped
    this.#isAfterLineFeed = other.#isAfterLineFeed
  }

  add(code: number): void {
    switch (this.#state) {
      case "none":
        if (code === closeBracket) this.#state = "label"
        return
      case "label":
        this.#parentheses = 1
        if (code === openParenthesis) this.#state = "before destination"
        else if (code === colon) this.#state = "before definition"
        else if (code !== closeBracket) this.#state = "none"
        return
      case "before definition":
        if (isSpace(code)) return
        this.#state = code === lessThan ? "definition in angle brackets" : "definition"
        this.#check(code)
        return
      case "definition":
        if (isSpace(code)) this.begin()
        else this.#check(code)
        return
      case "definition in angle brackets":
        if (code === greaterThan || code === lineFeed) this.begin()
        else this.#check(code)
        return
      default:
        this.#continueInParentheses(code)
    }
  }

  #continueInParentheses(code: number): void {
    const isBlankLine = code === lineFeed && this.#isAfterLineFeed
    if (code === lineFeed) this.#isAfterLineFeed = true
    else if (!isSpace(code)) this.#isAfterLineFeed = false
    if (isBlankLine) this.begin()
    else if (this.#isEscaped) this.#isEscaped = false
    else if (!isSpace(code)) this.#continueDestination(code)
    else if (code === lineFeed && this.#state === "in angle brackets") this.#state = "in parentheses"
  }

  #continueDestination(code: number): void {
    this.#check(code)
    if (code === backslash) this.#isEscaped = true
    if (this.#state === "in angle brackets") {
      if (code === greaterThan) this.#state = "in parentheses"
      return
    }
    const isFirst = this.#state === "before destination"
    this.#state = isFirst && code === lessThan ? "in angle brackets" : "in parentheses"
    if (code === openParenthesis) this.#parentheses++
    else if (code === closeParenthesis && --this.#parentheses === 0) this.begin()
  }

  #check(code: number): void {
    if (mayBeginAddress(code)) this.#hasAddress = true
  }
}

const isSpace = (code: number): boolean => code === 0x20 || code === 0x09 || code === lineFeed || code === 0x0d

const lineFeed = 0x0a
const backslash = 0x5c
const openParenthesis = 0x28
const closeParenthesis = 0x29
const closeBracket = 0x5d
const lessThan = 0x3c
const greaterThan = 0x3e
const colon = 0x3a
