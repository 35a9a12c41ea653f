import { type Detector, type Matcher, none, RunEnd, wait } from "./Detector.ts"
import { at, dash, dot, hyphen, isDigit, isLetter, percent, plus, underscore } from "./lexing/Characters.ts"
import type { NormalText } from "./lexing/NormalText.ts"

/** Mailboxes have up to 64 characters; longer ones are found so that nothing of them is left. */
const maxLocalPart = 256
const maxDomain = 255

const isLocal = (code: number): boolean =>
  isLetter(code) ||
  isDigit(code) ||
  code === dot ||
  code === underscore ||
  code === percent ||
  code === plus ||
  code === hyphen ||
  code === dash

const isLocalOrAt = (code: number): boolean => isLocal(code) || code === at

export const email: Detector = {
  kind: "EMAIL",
  canStart: (code) => code !== dot && isLocal(code),
  matcher: (text) => new EmailMatcher(text)
}

class EmailMatcher implements Matcher {
  readonly #text: NormalText
  readonly #localEnd: RunEnd
  readonly #domainEnd: RunEnd
  /** No address begins before this index. */
  #nextStart = 0
  /** Between the last `@` and this index no label begins with a letter. */
  #noLabelBefore = 0

  constructor(text: NormalText) {
    this.#text = text
    this.#localEnd = new RunEnd(text, isLocal)
    this.#domainEnd = new RunEnd(text, isLocalOrAt)
  }

  match(start: number): number {
    if (start < this.#nextStart) return none
    const text = this.#text
    const localEnd = this.#localEnd.from(start)
    if (localEnd - start > maxLocalPart) {
      this.#nextStart = localEnd - maxLocalPart
      return none
    }
    if (localEnd === text.end) return text.isOpen(start) ? wait : none
    if (text.code(localEnd) !== at) {
      this.#nextStart = localEnd
      return none
    }
    return this.#matchDomain(start, localEnd)
  }

  #matchDomain(start: number, atSign: number): number {
    const text = this.#text
    const from = atSign + 1
    const windowEnd = text.windowEnd(start)
    const end = Math.min(this.#domainEnd.from(from), from + maxDomain, windowEnd)
    const isCut = end === windowEnd && end < from + maxDomain
    if (isCut && text.isOpen(start)) return text.code(from) === dot ? none : wait
    const label = text.code(from) === dot ? none : this.#lastLabel(from, end)
    if (label === none) {
      if (!isCut) this.#nextStart = atSign
      return none
    }
    let labelEnd = label + 1
    while (labelEnd < end && text.code(labelEnd) !== dot) labelEnd++
    return labelEnd
  }

  /** Returns where the last label that begins with a letter begins, because top-level domains do. */
  #lastLabel(from: number, end: number): number {
    const text = this.#text
    const first = Math.max(from + 2, this.#noLabelBefore)
    for (let index = end - 1; index >= first; index--) {
      if (text.code(index - 1) === dot && isLetter(text.code(index))) return index
    }
    this.#noLabelBefore = Math.max(this.#noLabelBefore, end)
    return none
  }
}
