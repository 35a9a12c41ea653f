/**
 * Tells whether a text, read so far, has just entered an address. A value must not be restored there, because opening the
 * address would send the value to a foreign server. The check errs on the side of an address: text between two quotation
 * marks, or inside a tag, belongs to an address that began there, also after a space.
 */
export class LinkContext {
  #isLink = false
  #isAfterQuote = false
  #isTag = false
  /** The previous character was `<`. */
  #isOpening = false
  /** The last characters, in which an address may begin. */
  #recent = ""

  get isInside(): boolean {
    return this.#isLink
  }

  /** The text ends here, and another one begins. */
  end(): void {
    this.#isAfterQuote = false
    this.#isTag = false
    this.#isOpening = false
    this.#begin()
  }

  add(text: string): void {
    for (let at = 0; at < text.length; at++) {
      const character = text.charAt(at)
      if (this.#isOpening) {
        this.#isOpening = false
        if (/[A-Za-z/!?]/.test(character)) {
          this.#begin()
          this.#isTag = true
        }
      }
      switch (character) {
        case "<":
          this.#isOpening = true
          break
        case ">":
          this.#isTag = false
          this.#isAfterQuote = false
          this.#begin()
          break
        case '"':
          if (!this.#isTag) {
            this.#isAfterQuote = true
            this.#begin()
          }
          break
        case "\n":
          if (!this.#isTag) {
            this.#isAfterQuote = false
            this.#begin()
          }
          break
        default:
          if (!this.#isTag && !this.#isAfterQuote && /\s/.test(character)) this.#begin()
          else this.#continue(character)
      }
    }
  }

  #begin(): void {
    this.#isLink = false
    this.#recent = ""
  }

  #continue(character: string): void {
    if (this.#isLink) return
    this.#recent = (this.#recent + character).slice(-maxStart)
    if (/[:/\\.]/.test(character)) this.#isLink = linkStart.test(this.#recent)
  }
}

const linkStart = /(?:(?:https?|ftp|wss?|file):|[/\\]{2}|\bwww\.)$/i
const maxStart = 8
