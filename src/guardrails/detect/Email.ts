import { type Detector, type Matcher, none, RunEnd, wait } from "./Detector.ts"
import {
  at,
  colon,
  dash,
  dot,
  hyphen,
  isDigit,
  isLetter,
  percent,
  plus,
  slash,
  underscore
} from "./lexing/Characters.ts"
import type { NormalText } from "./lexing/NormalText.ts"
import { stringOf } from "./Numbers.ts"

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

const maxPicture = 16
/** A picture for screens of a higher resolution, such as logo@2x.png. */
const picture = /^\d(?:\.\d)?x\.(?:png|jpe?g|gif|svg|webp|avif|ico|icns|bmp|heic|pdf)$/i

/** True for the address of a repository, such as git@github.com:a/b. */
const isRepository = (text: NormalText, atSign: number, end: number): boolean => {
  const after = text.code(end)
  const isGit = stringOf(text, atSign - 3, atSign) === "git" && !isLocal(text.code(atSign - 4))
  return isGit && (after === colon || after === slash)
}

class EmailMatcher implements Matcher {
  readonly #text: NormalText
  readonly #localEnd: RunEnd
  readonly #domainEnd: RunEnd
  /** No address begins before this index. */
  #nextStart = 0
  /** Between the last `@` and this index no label begins with two letters. */
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
    const isCut = end === windowEnd
    if (isCut && text.isOpen(start)) return text.code(from) === dot ? none : wait
    const label = text.code(from) === dot ? none : this.#lastLabel(from, end)
    if (label === none) {
      if (!isCut) this.#nextStart = atSign
      return none
    }
    let labelEnd = label + 1
    while (labelEnd < end && text.code(labelEnd) !== dot) labelEnd++
    const isOther =
      isRepository(text, atSign, labelEnd) || picture.test(stringOf(text, from, Math.min(labelEnd, from + maxPicture)))
    if (!isOther) return labelEnd
    this.#nextStart = atSign
    return none
  }

  /** Returns where the last label that begins with two letters begins, because top-level domains do. */
  #lastLabel(from: number, end: number): number {
    const text = this.#text
    const first = Math.max(from + 2, this.#noLabelBefore)
    for (let index = end - 1; index >= first; index--) {
      const isLabel = text.code(index - 1) === dot && isLetter(text.code(index)) && isLetter(text.code(index + 1))
      if (isLabel && index + 1 < end) return index
    }
    this.#noLabelBefore = Math.max(this.#noLabelBefore, end)
    return none
  }
}
