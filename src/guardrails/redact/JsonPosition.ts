import type { LinkContext } from "./LinkContext.ts"

/** Follows a text that is the inside of tool arguments: an object in JSON, or anything else that a model writes. */
export class JsonPosition {
  readonly #link: LinkContext | undefined
  #isObject: boolean | undefined
  #isInString = false
  /** The beginning of an escape that has not ended. */
  #escape = ""
  /** The last character outside strings that is no space. */
  #last = ""

  constructor(link: LinkContext | undefined) {
    this.#link = link
  }

  /** True if a number that begins here is a value of the object, and not a part of a string. */
  get isAtNumber(): boolean {
    return this.#isObject === true && !this.#isInString && /[:,[-]/.test(this.#last)
  }

  add(text: string): void {
    for (let at = 0; at < text.length; at++) {
      const character = text.charAt(at)
      this.#isObject ??= /\s/.test(character) ? undefined : character === "{"
      if (this.#escape !== "" || character === "\\") this.#continueEscape(character)
      else if (this.#isObject && character === '"') this.#quote()
      else this.#addCharacter(character)
    }
  }

  /** The strings of an object are texts of their own: an address does not continue from one into the next. */
  #quote(): void {
    this.#isInString = !this.#isInString
    this.#last = '"'
    this.#link?.end()
  }

  #addCharacter(character: string): void {
    if (!this.#isInString && !/\s/.test(character)) this.#last = character
    this.#link?.add(character)
  }

  #continueEscape(character: string): void {
    this.#escape += character
    const { length } = this.#escape
    if (length === 1 || (this.#escape.startsWith("\\u") && length < 6)) return
    const hex = length === 6 ? Number.parseInt(this.#escape.slice(2), 16) : Number.NaN
    this.#escape = ""
    this.#addCharacter(Number.isNaN(hex) ? (spaces.get(character) ?? character) : String.fromCharCode(hex))
  }
}

const spaces: ReadonlyMap<string, string> = new Map([
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"]
])
