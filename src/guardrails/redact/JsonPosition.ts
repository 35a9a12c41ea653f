import { JsonText, stringClosed, stringOpened } from "./JsonText.ts"
import { LinkContext } from "./LinkContext.ts"

/** JSON in so many strings around it is read as JSON. Inside more strings a text counts as prose. */
const maxDepth = 4

export interface PositionOptions {
  /** True if the text as a whole is no text for people: links begin and end within its strings. */
  readonly isDocument: boolean
  /** The context in which the text begins; `undefined` if links do not matter. */
  readonly link: LinkContext | undefined
}

/** A place outside of the strings of a JSON text, which later characters may show to be prose. */
interface Bare {
  readonly text: JsonText
  readonly depth: number
  readonly delimiters: number
}

/**
 * Follows a text that may be JSON, with JSON in its strings, at each depth: a text at depth 2 is a string in the JSON that
 * is a string of the whole text. Each of them has links of its own.
 */
export class JsonPosition {
  readonly #texts = [new JsonText()]
  readonly #links: Array<LinkContext> | undefined
  readonly #isDocument: boolean
  #depth = 0
  #bare: Bare | undefined

  constructor({ isDocument, link }: PositionOptions) {
    this.#isDocument = isDocument
    this.#links = link === undefined ? undefined : [link]
  }

  /** The number of strings of JSON around this position. */
  get depth(): number {
    return this.#depth
  }

  /** True if no later character changes what this object tells. */
  get isSettled(): boolean {
    return this.#links === undefined && this.#depth === 0 && this.#texts[0]?.isProse === true
  }

  /** The context in which the next text begins if it continues this one. */
  get nextLink(): LinkContext | undefined {
    const link = this.#links?.[0]
    return link?.isOpen === true && !this.#isDocument ? link : undefined
  }

  /** A word of the text around a string ends where the string begins, but a tag or a destination does not. */
  get isInsideLink(): boolean {
    if (this.#links === undefined) return false
    const first = this.#isDocument && this.#texts[0]?.isProse === false ? 1 : 0
    for (let depth = first; depth < this.#depth; depth++) if (this.#links[depth]?.isInMarkup === true) return true
    return this.#depth >= first && this.#links[this.#depth]?.isInside === true
  }

  /** Remembers this position and returns true if it is inside JSON and outside of its strings. */
  enterBare(): boolean {
    const text = this.#texts[this.#depth]
    if (text?.isStructure !== true) return false
    this.#bare = { text, depth: this.#depth, delimiters: text.delimiters }
    return true
  }

  /** True if the position is in the same text as the remembered one, and outside of its strings. */
  get isStillBare(): boolean {
    return this.#bare?.depth === this.#depth && !this.#bare.text.isProse
  }

  /**
   * Returns true if the remembered position is in JSON, false if it is in prose, and `undefined` as long as later
   * characters decide it. A number ends with a comma or a bracket. An array of nothing but numbers is JSON if it ends the text.
   */
  get isJson(): boolean | undefined {
    if (this.#bare === undefined) return undefined
    const { delimiters, depth, text } = this.#bare
    if (depth > this.#depth) return text.isDone
    if (!text.isList && text.delimiters !== delimiters) return true
    return text.isProse ? false : undefined
  }

  /** The text ends here. Returns true if the remembered position is in JSON. */
  end(): boolean {
    const { depth, text } = this.#bare ?? { depth: -1, text: undefined }
    return depth === 0 && text?.isDone === true
  }

  addCode(code: number): void {
    let character = code
    for (let depth = 0; ; depth++) {
      this.#links?.[depth]?.addCode(character)
      const read = this.#texts[depth]?.add(character)
      if (read === undefined) return
      if (read >= 0) {
        character = read
        continue
      }
      if (read === stringOpened) this.#open(depth)
      else if (read === stringClosed) this.#close(depth)
      return
    }
  }

  /** A string opens in the text at `outer`. Only now it is certain that a string before it has ended as JSON demands. */
  #open(outer: number): void {
    const depth = outer + 1
    this.#depth = depth
    if (depth < maxDepth) {
      this.#texts[depth] ??= new JsonText()
      this.#texts[depth].begin()
    }
    if (this.#links === undefined) return
    this.#links[outer]?.endWord()
    this.#links[depth] ??= new LinkContext(true)
    this.#links[depth].begin()
  }

  #close(outer: number): void {
    this.#depth = outer
    this.#texts[outer + 1]?.end()
  }
}
