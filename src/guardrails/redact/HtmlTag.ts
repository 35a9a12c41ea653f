import { isAsciiLetter } from "../detect/lexing/Characters.ts"

/** Where the next character of a tag stands, in the terms of the HTML standard's tokenizer. */
type State =
  | "none"
  | "opened"
  | "name"
  | "before name"
  | "in name"
  | "after name"
  | "before value"
  | "value"
  | '"'
  | "'"

/**
 * Follows the tags of HTML in a text, and autolinks such as `<https://x.test>`. A `>` inside a quoted value does not end a
 * tag. After `<base>` with an address, each later tag may have that address.
 */
export class HtmlTag {
  #state: State = "none"
  #hasAddress = false
  /** The first letters of the tag's name. */
  #name = ""
  #hasBase = false

  /** True from the first character after which the open tag may send what follows: `:`, `/`, `\` or `&` in a value. */
  get hasAddress(): boolean {
    return this.#hasAddress || (this.#hasBase && this.#isInTag)
  }

  /** True if the next text may continue a tag of this one, or the address of its `<base>`. */
  get isOpen(): boolean {
    return this.#isInTag || this.#hasBase
  }

  get #isInTag(): boolean {
    return this.#state !== "none" && this.#state !== "opened"
  }

  begin(): void {
    this.#endTag()
    this.#hasBase = false
  }

  #endTag(): void {
    this.#state = "none"
    this.#hasAddress = false
    this.#name = ""
  }

  copyFrom(other: HtmlTag): void {
    this.#state = other.#state
    this.#hasAddress = other.#hasAddress
    this.#name = other.#name
    this.#hasBase = other.#hasBase
  }

  add(code: number): void {
    const state = this.#state
    if (state === "none") {
      if (code === lessThan) this.#state = "opened"
      return
    }
    if (state === "opened") {
      this.#state = isAsciiLetter(code) ? "name" : code === lessThan ? "opened" : "none"
      if (this.#state === "name") this.#name = String.fromCharCode(code)
      return
    }
    if (state === '"' || state === "'") {
      if (code === (state === '"' ? doubleQuote : singleQuote)) this.#state = "before name"
      else this.#check(code)
      return
    }
    if (code === greaterThan) {
      this.#hasBase ||= this.#hasAddress && this.#name.toLowerCase() === base
      this.#endTag()
    } else this.#state = this.#next(state, code)
  }

  #next(state: State, code: number): State {
    switch (state) {
      case "name":
        if (code === slash || isHtmlSpace(code)) return "before name"
        // An autolink has no name: its scheme stands there.
        if (code === colon) this.#hasAddress = true
        if (this.#name.length <= base.length) this.#name += String.fromCharCode(code)
        return "name"
      case "before name":
        return code === slash || isHtmlSpace(code) ? "before name" : "in name"
      case "before value":
        if (isHtmlSpace(code)) return "before value"
        if (code === doubleQuote) return '"'
        if (code === singleQuote) return "'"
        this.#check(code)
        return "value"
      case "value":
        if (isHtmlSpace(code)) return "before name"
        this.#check(code)
        return "value"
      default:
        if (code === slash) return "before name"
        if (code === equalsSign) return "before value"
        if (isHtmlSpace(code)) return "after name"
        return "in name"
    }
  }

  #check(code: number): void {
    if (mayBeginAddress(code)) this.#hasAddress = true
  }
}

/** Every address of another server has one of these, also if it is written with entities, escapes, tabs or line breaks. */
export const mayBeginAddress = (code: number): boolean =>
  code === colon || code === slash || code === backslash || code === ampersand

/** The name of the tag that gives the other tags their address. */
const base = "base"

const isHtmlSpace = (code: number): boolean => code === 0x20 || (code >= 0x09 && code <= 0x0d && code !== 0x0b)

const lessThan = 0x3c
const greaterThan = 0x3e
const doubleQuote = 0x22
const singleQuote = 0x27
const equalsSign = 0x3d
const slash = 0x2f
const backslash = 0x5c
const colon = 0x3a
const ampersand = 0x26
